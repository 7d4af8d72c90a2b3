from zoo.configuration.fields import changed as changed
from zoo.experiment import Evaluation as Evaluation
from zoo.experiment import Experiment as Experiment
from zoo.experiment import Parallel as Parallel
from zoo.experiment import Training as Training
from zoo.lab.comparison.comparison import compare as compare
from zoo.lab.evaluation.load import load as load
from zoo.lab.evaluation.load import load_translator as load_translator
from zoo.lab.training.train import train as train
from zoo.lexicon import Lexicon as Lexicon

__version__: str
