package restore

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/control"
	"github.com/tailrace-cdc/replicator/failure"
)

// Key is the item that a query selects, or several with one partition key.
type Key struct {
	given map[string]json.RawMessage // attributes in JSON, plain or typed
	texts map[string]string          // attributes as they were typed in NAME=VALUE

	members []string // of the canonical key; nil before the first event
}

// ParseKey reads {"pk":"hats"}, typed or plain, or NAME=VALUE for each attribute; nil if there is
// none.
func ParseKey(words []string) (*Key, error) {
	if len(words) == 0 {
		return nil, nil
	}
	k := &Key{given: map[string]json.RawMessage{}, texts: map[string]string{}}
	for _, word := range words {
		if strings.HasPrefix(strings.TrimSpace(word), "{") {
			if err := json.Unmarshal([]byte(word), &k.given); err != nil {
				return nil, errKey("it is not a JSON object")
			}
			continue
		}
		name, value, ok := strings.Cut(word, "=")
		if !ok || name == "" {
			return nil, errKey("it is neither JSON nor NAME=VALUE")
		}
		k.texts[name] = value
	}
	return k, nil
}

func errKey(what string) error {
	return failure.Usagef(`--key '{"pk":"hats","sk":12}', --key pk=hats, or --key pk=hats --key sk=12`, "--key: %s",
		what)
}

// matches reports whether a canonical key has every attribute that was given. The first key gives
// the types of the table's key attributes.
func (k *Key) matches(canonical string) (bool, error) {
	if k.members == nil {
		if err := k.setMembers(canonical); err != nil {
			return false, err
		}
	}
	return !slices.ContainsFunc(k.members, func(m string) bool { return !hasMember(canonical, m) }), nil
}

// hasMember reports whether a canonical key has a member, as in "pk":{"S":"hats"}. Quotes inside
// texts are escaped, so a match behind { or , is a member and not part of a value.
func hasMember(canonical, member string) bool {
	for rest := canonical; ; {
		at := strings.Index(rest, member)
		if at < 0 {
			return false
		}
		if at > 0 && (rest[at-1] == '{' || rest[at-1] == ',') {
			return true
		}
		rest = rest[at+1:]
	}
}

// setMembers encodes the given attributes as members of a canonical key.
func (k *Key) setMembers(canonical string) error {
	types, err := typesOf(canonical)
	if err != nil {
		return err
	}
	for name, text := range k.texts {
		value, err := json.Marshal(text)
		if err != nil {
			return err
		}
		if types[name] == 'N' {
			value = []byte(text)
		}
		k.given[name] = value
	}
	for name, value := range k.given {
		kind, ok := types[name]
		if !ok {
			return errKey(fmt.Sprintf("the table's key has no attribute %q", name))
		}
		one, err := json.Marshal(map[string]json.RawMessage{name: value})
		if err != nil {
			return errKey(fmt.Sprintf("the value of %q is not possible", name))
		}
		canonical, err := control.ParseKey(one, change.KeySchema{Partition: change.KeyAttr{Name: name, Type: kind}})
		if err != nil {
			return errKey(err.Error())
		}
		k.members = append(k.members, string(canonical[1:len(canonical)-1]))
	}
	return nil
}

// typesOf returns the types of the attributes of a canonical key.
func typesOf(canonical string) (map[string]byte, error) {
	var key map[string]map[string]string
	if err := json.Unmarshal([]byte(canonical), &key); err != nil {
		return nil, fmt.Errorf("read key of an event: %w", err)
	}
	types := map[string]byte{}
	for name, value := range key {
		for kind := range value {
			if len(kind) != 1 || len(value) != 1 {
				return nil, errors.New("read key of an event: not in DynamoDB's notation")
			}
			types[name] = kind[0]
		}
	}
	return types, nil
}
