package yamlfile

import (
	"encoding"
	"reflect"

	"go.yaml.in/yaml/v4"
)

// Decode reads the node into what to points at: structs with yaml tags, maps by name, slices,
// texts, whole numbers, booleans, and types with UnmarshalText or UnmarshalYAML. A struct with yaml
// tags and UnmarshalText may be written as a block of its keys or as one text. What the file leaves
// out, or writes as null, keeps its value. An element of a list or a map that cannot be read stays
// in place as the zero value, so that paths name elements by their position.
func (r *Reader) Decode(n *yaml.Node, path string, to any) {
	r.decode(Resolve(n), path, reflect.ValueOf(to).Elem())
}

// decode reads a node that is not an alias into a value that can be set.
func (r *Reader) decode(n *yaml.Node, path string, to reflect.Value) {
	if isNull(n) {
		return
	}
	switch u := to.Addr().Interface().(type) {
	case yaml.Unmarshaler:
		if err := u.UnmarshalYAML(n); err != nil {
			r.wrong(n, path, r.ValueCode, r.Example, err.Error())
		}
		return
	case encoding.TextUnmarshaler:
		if n.Kind == yaml.MappingNode && to.Kind() == reflect.Struct && len(Keys(to.Type())) > 0 {
			r.decodeStruct(n, path, to)
		} else if n.Kind != yaml.ScalarNode {
			r.wrongKind(n, path, "one text or number", r.Example)
		} else if err := u.UnmarshalText([]byte(n.Value)); err != nil {
			r.wrong(n, path, r.ValueCode, r.Example, err.Error())
		}
		return
	}
	switch to.Kind() {
	case reflect.Struct:
		r.decodeStruct(n, path, to)
	case reflect.Slice:
		to.Set(reflect.MakeSlice(to.Type(), 0, len(n.Content)))
		r.Elements(n, path, func(e *yaml.Node, path string) {
			element := reflect.New(to.Type().Elem()).Elem()
			r.decode(e, path, element)
			to.Set(reflect.Append(to, element))
		})
	case reflect.Map:
		to.Set(reflect.MakeMap(to.Type()))
		r.Entries(n, path, func(key, value *yaml.Node, path string) {
			element := reflect.New(to.Type().Elem()).Elem()
			r.decode(value, path, element)
			to.SetMapIndex(reflect.ValueOf(key.Value), element)
		})
	default:
		if n.Kind != yaml.ScalarNode || n.Load(to.Addr().Interface()) != nil {
			r.wrongKind(n, path, kindName(to.Kind()), r.Example)
		}
	}
}

// decodeStruct reads a block into the fields of a struct.
func (r *Reader) decodeStruct(n *yaml.Node, path string, to reflect.Value) {
	known := map[string]Field{}
	for i := range to.NumField() {
		if key := keyOf(to.Type().Field(i)); key != "" {
			known[key] = func(value *yaml.Node, path string) { r.decode(value, path, to.Field(i)) }
		}
	}
	r.fields(n, path, documented(to.Type()), known)
}

// Keys returns the keys that a struct is read from, in the order of its fields.
func Keys(t reflect.Type) []string {
	var keys []string
	for i := range t.NumField() {
		if key := keyOf(t.Field(i)); key != "" {
			keys = append(keys, key)
		}
	}
	return keys
}

// documented returns the keys that hints list: keys of fields without the tag `hidden:"true"`.
func documented(t reflect.Type) []string {
	var keys []string
	for i := range t.NumField() {
		if f := t.Field(i); f.Tag.Get("hidden") != "true" && keyOf(f) != "" {
			keys = append(keys, keyOf(f))
		}
	}
	return keys
}

func keyOf(f reflect.StructField) string {
	if key := f.Tag.Get("yaml"); key != "-" && f.IsExported() {
		return key
	}
	return ""
}

func kindName(k reflect.Kind) string {
	switch k {
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "text"
	default:
		return "a whole number"
	}
}
