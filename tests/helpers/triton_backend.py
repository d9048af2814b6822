"""PyTorch with the Triton kernels on the CPU, where Triton's interpreter runs them."""

from functools import cache

from marginrank.operators.torch.matrix import TorchMatrix


def on_cpu(data):
    """Return X of the data for the Triton kernels."""
    speed_up()
    return TorchMatrix.of(data, has_triton=True)


@cache
def speed_up():
    """Let the interpreter patch Triton's language once per module, not in every call."""
    from triton.runtime import interpreter

    patched = set()

    def call(self, *args, **kwargs):
        if self.fn.__module__ not in patched:
            patched.add(self.fn.__module__)
            interpreter._patch_lang(self.fn)
        return self.rewrite()(*args, **kwargs)

    interpreter.InterpretedFunction.__call__ = call
