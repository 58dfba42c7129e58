package api

import (
	"encoding/json"
	"reflect"
	"strings"
)

// Description is the OpenAPI 3.1 description, generated from the routes and the types of their answers.
func (a *API) Description() map[string]any {
	schemas, paths := map[string]any{}, map[string]any{}
	schemaOf(reflect.TypeFor[Problem](), schemas)
	schemaOf(reflect.TypeFor[Closed](), schemas)
	failed := map[string]any{"description": "An error (RFC 9457)", "content": map[string]any{"application/problem+json": map[string]any{"schema": reference("Problem")}}}
	for _, r := range a.routes {
		params := []any{}
		for _, p := range r.params {
			params = append(params, map[string]any{"name": p.name, "in": "query", "required": p.required, "description": p.help, "schema": p.schema()})
		}
		media, schema := r.media, map[string]any{"type": "string"}
		switch {
		case r.answer != nil:
			media, schema = "application/json", schemaOf(reflect.TypeOf(r.answer), schemas)
		case media == "":
			media, schema = "application/json", map[string]any{"type": "object"}
		}
		paths[r.path] = map[string]any{"get": map[string]any{"summary": r.summary, "operationId": strings.Trim(strings.TrimSuffix(r.path, ".json"), "/"), "parameters": params,
			"responses": map[string]any{"200": map[string]any{"description": "The answer", "content": map[string]any{media: map[string]any{"schema": schema}}}, "default": failed}}}
	}
	return map[string]any{"openapi": "3.1.0", "info": map[string]any{"title": "xdpmon", "version": "1", "description": "Results of the measurements. Read-only. Answers have an ETag and bounded size."},
		"servers": []any{map[string]any{"url": Prefix}}, "paths": paths, "components": map[string]any{"schemas": schemas}}
}

func (p param) schema() map[string]any {
	switch p.kind {
	case integer:
		return map[string]any{"type": "integer", "minimum": 0, "maximum": p.most}
	case truth:
		return map[string]any{"type": "boolean"}
	}
	return map[string]any{"type": "string", "maxLength": mostText}
}

func reference(name string) map[string]any {
	return map[string]any{"$ref": "#/components/schemas/" + name}
}

var (
	rawType     = reflect.TypeFor[json.RawMessage]()
	marshalType = reflect.TypeFor[json.Marshaler]()
)

// schemaOf is a type's schema; structs have named schemas.
func schemaOf(t reflect.Type, schemas map[string]any) map[string]any {
	switch {
	case t == rawType || t.Kind() == reflect.Interface:
		return map[string]any{}
	case t.Kind() == reflect.Pointer:
		return schemaOf(t.Elem(), schemas)
	case t.Implements(marshalType):
		return map[string]any{"type": "object"}
	}
	switch t.Kind() {
	case reflect.Struct:
		if _, known := schemas[t.Name()]; !known {
			schemas[t.Name()] = nil // it may contain itself
			schemas[t.Name()] = object(t, schemas)
		}
		return reference(t.Name())
	case reflect.Slice:
		return map[string]any{"type": "array", "items": schemaOf(t.Elem(), schemas)}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": schemaOf(t.Elem(), schemas)}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Float64:
		return map[string]any{"type": "number"}
	}
	return map[string]any{"type": "integer"}
}

func object(t reflect.Type, schemas map[string]any) map[string]any {
	properties, required := map[string]any{}, []string{}
	for i := range t.NumField() {
		f := t.Field(i)
		name, rest, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" || name == "" {
			continue
		}
		s := schemaOf(f.Type, schemas)
		if doc := f.Tag.Get("doc"); doc != "" {
			s["description"] = doc
		}
		if properties[name] = s; !strings.Contains(rest, "omit") {
			required = append(required, name)
		}
	}
	return map[string]any{"type": "object", "properties": properties, "required": required}
}
