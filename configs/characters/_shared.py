"""Shared parts of the letter models of one or two languages: no parameter belongs to a word."""

from zoo import Evaluation, Experiment, Training
from zoo.cores import LSTM
from zoo.data import Mixed, Vocabulary
from zoo.embeddings import CharCNN
from zoo.heads import CharLSTM
from zoo.models import LanguageModel
from zoo.optimizers import Adam, Cosine


def letter_model(data: Mixed) -> Experiment:
    """Words in by a convolution over their bytes, out by an LSTM that spells them."""
    return Experiment(
        data=data,
        vocabulary=Vocabulary(splits=(), unknown="refused"),
        model=LanguageModel(
            embedding=CharCNN(size=128), core=LSTM(size=256), head=CharLSTM(size=128)
        ),
        training=Training(
            batch=32,
            length=20,
            optimizer=Adam(learning_rate=0.002, schedule=Cosine(warmup=100)),
            clip=1.0,
            epochs=10,
        ),
        evaluation=Evaluation(state="sentences", batch=32, length=32),
    )
