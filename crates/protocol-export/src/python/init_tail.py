

if not TYPE_CHECKING:
    # Loaded when first asked for: a program that starts does not wait for models it may never use.
    def __getattr__(name: str) -> Any:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        module = "_base" if name in _BASE else "methods" if name in _METHODS else "types"
        value = getattr(import_module(f".{module}", __name__), name)
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted(__all__)
