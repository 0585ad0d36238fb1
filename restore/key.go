package restore

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/control"
	"github.com/tailrace-cdc/replicator/failure"
)

// Key is the item that a query selects, or several with one partition key.
type Key struct {
	words   []string // as it was typed
	members []string // of the canonical key; nil before the first event
}

// ParseKey reads what was typed after --key, in a form of control.KeyForms; nil if there is none.
// The first event gives the types of the key's attributes.
func ParseKey(words []string) (*Key, error) {
	if len(words) == 0 {
		return nil, nil
	}
	_, err := control.KeyObject(words, nil)
	return &Key{words: words}, err
}

func errKey(what string) error { return failure.Usagef(control.KeyForms, "--key: %s", what) }

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
	object, err := control.KeyObject(k.words, slices.Collect(maps.Keys(types)))
	if err != nil {
		return err
	}
	var given map[string]json.RawMessage
	if err := json.Unmarshal(object, &given); err != nil {
		return err
	}
	for name, value := range given {
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
