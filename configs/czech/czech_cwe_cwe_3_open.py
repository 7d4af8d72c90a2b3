"""Czech with a trigram model, letters in and out, against noise words of any spelling.

    python train.py --config czech_cwe_cwe_3_open runs/czech_cwe_cwe_3_open

As czech_cwe_cwe_3, except for the noise. By Labeau and Allauzen (2017), section 4.4, the closed
vocabulary of noise words keeps their model from learning about unknown words; they leave other
noise to later work. Here it is a trigram model of the letters of the training words. Perplexities
are over the words of the lexicon, as in czech_cwe_cwe_3. Expected, of one run: a validation
perplexity of 20,066 after the first epoch, and none better later.
"""

from configs import czech_we_3, variant
from configs.czech._shared import letters_out
from zoo.heads import LetterNoise

get_config = variant(czech_we_3, letters_out(LetterNoise(order=3)))
