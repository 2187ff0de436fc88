"""The certificate of a fitted model: `model.certificate_`. The proof is in docs/mathematics.md, section 6."""

from ._train.certificate import Certificate

__all__ = ["Certificate"]
