"""Count what is launched on a device: operations of PyTorch, and Triton kernels."""

from typing import Any, Self

from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

NO_LAUNCH = ("detach", "_unsafe_view", "lift_fresh", "alias")


class LaunchCount(TorchDispatchMode):
    """Writes down the names of all operations and kernels while it is active.

    Views and allocations launch nothing. Copies between host and device count.
    """

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []
        self._patched: list[tuple[Any, Any]] = []

    def __enter__(self) -> Self:
        """Start counting."""
        for kind in _kernel_classes():
            self._patched.append((kind, kind.run))
            kind.run = self._counting(kind.run)
        super().__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        """Stop counting."""
        super().__exit__(*error)
        while self._patched:
            kind, run = self._patched.pop()
            kind.run = run

    def _counting(self, run: Any) -> Any:
        def counted(kernel: Any, *args: Any, **kwargs: Any) -> Any:
            self.names.append(kernel.__name__)
            with _disable_current_modes():  # Triton's interpreter uses PyTorch itself
                return run(kernel, *args, **kwargs)

        return counted

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Run an operation and count it."""
        name = function.overloadpacket.__name__
        if not (function.is_view or name.startswith("empty") or name in NO_LAUNCH):
            self.names.append(name)
        return function(*args, **(kwargs or {}))


def _kernel_classes() -> list[Any]:
    """Return the classes of Triton's kernels, compiled and interpreted."""
    try:
        from triton.runtime.interpreter import InterpretedFunction
        from triton.runtime.jit import JITFunction
    except ImportError:
        return []
    return [JITFunction, InterpretedFunction]
