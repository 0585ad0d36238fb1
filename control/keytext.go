package control

import (
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/failure"
)

// KeyForms shows how people type a key, for hints.
const KeyForms = `--key pk=hats,sk=12, --key '{"pk":"hats","sk":12}', or typed '{"pk":{"S":"hats"},"sk":{"N":"12"}}'`

// KeyObject returns a key as a JSON object, plain or typed, from what was typed: such an object, or
// NAME=VALUE for each attribute, separated by commas or in words of their own. names are the key
// attributes of the table, so that a value may have commas; nil: they are not known. Every value of
// NAME=VALUE is a JSON string: ParseKey reads it as the type that the table's key has.
func KeyObject(words, names []string) ([]byte, error) {
	members := map[string]json.RawMessage{}
	for _, word := range words {
		if strings.HasPrefix(strings.TrimSpace(word), "{") {
			if json.Unmarshal([]byte(word), &members) != nil {
				return nil, errKeyText("it is not a JSON object")
			}
			continue
		}
		for _, pair := range pairs(word, names) {
			name, value, ok := strings.Cut(pair, "=")
			if !ok || name == "" {
				return nil, errKeyText("it is neither JSON nor NAME=VALUE")
			}
			text, err := json.Marshal(value)
			if err != nil {
				return nil, err
			}
			members[name] = text
		}
	}
	return json.Marshal(members)
}

// errKeyText returns an error of usage about a key that was typed.
func errKeyText(what string) error { return failure.Usagef(KeyForms, "read --key: %s", what) }

// anyPair is where the second NAME=VALUE of a word begins if the names are not known.
var anyPair = regexp.MustCompile(`,[^,={}"]+=`)

// pairs splits NAME=VALUE,NAME=VALUE.
func pairs(word string, names []string) (all []string) {
	next := anyPair
	if len(names) > 0 {
		var quoted []string
		for _, name := range names {
			quoted = append(quoted, regexp.QuoteMeta(name))
		}
		next = regexp.MustCompile(",(?:" + strings.Join(quoted, "|") + ")=")
	}
	for {
		at := next.FindStringIndex(word)
		if at == nil {
			return append(all, word)
		}
		all, word = append(all, word[:at[0]]), word[at[0]+1:]
	}
}

// ReadKey returns the canonical key that was typed on a command line, in a form of KeyForms.
func ReadKey(words []string, schema change.KeySchema) ([]byte, error) {
	names := []string{schema.Partition.Name}
	if schema.Sort != nil {
		names = append(names, schema.Sort.Name)
	}
	object, err := KeyObject(words, names)
	if err != nil {
		return nil, err
	}
	return ParseKey(object, schema)
}

// KeyHashes returns the hashes that the item with a key, in a form of KeyForms, may have. Which of
// two attributes is the partition key is not in the log, and neither are the types of the key's
// attributes, so all that fit are tried: in a table only one of them occurs. An empty key has no
// hashes.
func KeyHashes(key string) (map[uint64]bool, error) {
	if key == "" {
		return nil, nil
	}
	object, err := KeyObject([]string{key}, nil)
	if err != nil {
		return nil, err
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(object, &members); err != nil {
		return nil, err
	}
	hashes, err := map[uint64]bool{}, errors.New("a key has one or two attributes")
	for _, schema := range schemasOf(members) {
		var canonical []byte
		if canonical, err = ParseKey(object, schema); err == nil {
			hashes[change.HashKey(canonical)] = true
		}
	}
	if len(hashes) == 0 {
		return nil, errKeyText(err.Error())
	}
	return hashes, nil
}

// schemasOf returns every schema that the one or two attributes of a key may have.
func schemasOf(members map[string]json.RawMessage) (all []change.KeySchema) {
	var attrs []change.KeyAttr
	for name := range members {
		for _, kind := range "SNB" {
			attrs = append(attrs, change.KeyAttr{Name: name, Type: byte(kind)})
		}
	}
	for i, a := range attrs {
		switch len(members) {
		case 1:
			all = append(all, change.KeySchema{Partition: a})
		case 2:
			for _, b := range slices.Concat(attrs[:i], attrs[i+1:]) {
				if b.Name != a.Name {
					all = append(all, change.KeySchema{Partition: a, Sort: &b})
				}
			}
		}
	}
	return all
}
