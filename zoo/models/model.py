"""What an experiment trains."""


class Model:
    """A model of some kind. Subclasses are frozen dataclasses of components, with pure methods.

    A kind of model is trained by its task: see zoo.training.tasks.
    """

    # A ContextualBackground that has to be prepared from the texts, or None.
    background = None
