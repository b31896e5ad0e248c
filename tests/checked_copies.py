"""A plugin of mypy that holds `model_copy(update={"field": value})` to the model's fields and their types.

Pydantic takes any key and any value there. A key that isn't a literal, or a mapping built elsewhere, is not looked at.
"""

from collections.abc import Callable

from mypy.nodes import DictExpr, Expression, StrExpr
from mypy.plugin import MethodContext, Plugin
from mypy.subtypes import is_subtype
from mypy.types import Instance, Type, get_proper_type


def _check(context: MethodContext) -> Type:
    model = get_proper_type(context.type)
    updates = dict(zip(context.callee_arg_names, context.args, strict=True)).get("update", [])
    if isinstance(model, Instance) and updates and isinstance(updates[0], DictExpr):
        for key, value in updates[0].items:
            if isinstance(key, StrExpr):
                _check_field(context, model, key.value, value)
    return context.default_return_type


def _check_field(context: MethodContext, model: Instance, name: str, value: Expression) -> None:
    field = model.type.get(name)
    if field is None or field.type is None or name.startswith("__"):
        context.api.fail(f'"{model.type.name}" has no field "{name}"', value)
        return
    given = context.api.get_expression_type(value, field.type)
    if not is_subtype(given, field.type):
        context.api.fail(f'"{name}" of "{model.type.name}" is {field.type}, not {given}', value)


class _Plugin(Plugin):
    def get_method_hook(self, fullname: str) -> Callable[[MethodContext], Type] | None:
        return _check if fullname.endswith(".model_copy") else None


def plugin(_version: str) -> type[Plugin]:
    """Return the plugin, as mypy asks for it."""
    return _Plugin
