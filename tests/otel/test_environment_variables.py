"""The names of turntrace's variables as a module."""

from turntrace.config import OWN_VARIABLES
from turntrace.otel import environment_variables


def test_every_variable_has_its_name_and_no_other_is_there():
    """The module and the reader of the environment know the same variables."""
    assert set(environment_variables.__all__) == set(OWN_VARIABLES)
    assert all(getattr(environment_variables, name) == name for name in OWN_VARIABLES)


def test_opentelemetry_instrument_makes_no_flag_of_them():
    """Only OTEL_* names become flags of its command line."""
    assert not [name for name in vars(environment_variables) if name.startswith("OTEL_")]
