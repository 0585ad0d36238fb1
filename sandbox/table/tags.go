package table

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/tailrace-cdc/replicator/dynamodb/wire"
)

// Tag is a tag on a table.
type Tag struct{ Key, Value string }

// The limits of tags: characters, not bytes, and how many a table has. Source:
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Tagging.html
const (
	maxTagKey   = 128
	maxTagValue = 256
	maxTags     = 50
)

// tagText has the characters of keys and values: letters, digits and spaces of any script, and some
// signs.
var tagText = regexp.MustCompile(`^[\p{L}\p{Z}\p{N}_.:/=+\-@]*$`)

// ErrTags is the error for more tags than a table can have.
var ErrTags = wire.Invalid("Number of Tags exceed the current limit for the provided ResourceArn")

// ReadTags reads and checks a list of tags.
func ReadTags(n *wire.Node) ([]Tag, *wire.Error) {
	var out []Tag
	seen := map[string]bool{}
	for i := range n.Kids {
		key, value := n.Kids[i].Get("Key"), n.Kids[i].Get("Value")
		if err := checkTagKey(key); err != nil {
			return nil, err
		}
		if value == nil || utf8.RuneCountInString(value.Text) > maxTagValue || !tagText.MatchString(value.Text) {
			return nil, wire.Invalid("The Tag Value provided is invalid, Value: %s", shown(value))
		}
		if seen[key.Text] {
			return nil, wire.Invalid("Duplicate Tag Keys provided as input: Duplicate Tag Key found %s", key.Text)
		}
		seen[key.Text] = true
		out = append(out, Tag{strings.Clone(key.Text), strings.Clone(value.Text)})
	}
	if len(out) > maxTags {
		return nil, ErrTags
	}
	return out, nil
}

// CheckTagKeys checks the keys of tags that are to be removed.
func CheckTagKeys(n *wire.Node) *wire.Error {
	for i := range n.Kids {
		if err := checkTagKey(&n.Kids[i]); err != nil {
			return err
		}
	}
	if len(n.Kids) > maxTags {
		return ErrTags
	}
	return nil
}

// checkTagKey checks the key of a tag; nil is one that was not sent.
func checkTagKey(key *wire.Node) *wire.Error {
	switch {
	case key == nil || key.Text == "" || utf8.RuneCountInString(key.Text) > maxTagKey || !tagText.MatchString(key.Text):
		return wire.Invalid("The Tag Key provided is invalid, Key: %s", shown(key))
	case strings.HasPrefix(key.Text, "aws:"):
		return wire.Invalid("Tag Key cannot be prefixed with aws:, Key: %s", key.Text)
	}
	return nil
}

// shown returns a text as messages show it.
func shown(n *wire.Node) string {
	if n == nil {
		return "null"
	}
	return n.Text
}

// AddTags adds tags to a table's definition, and replaces those with the same keys.
func (d *Definition) AddTags(tags []Tag) *wire.Error {
	all := append([]Tag(nil), d.Tags...)
	for _, tag := range tags {
		at := 0
		for at < len(all) && all[at].Key != tag.Key {
			at++
		}
		if at < len(all) {
			all[at] = tag
		} else {
			all = append(all, tag)
		}
	}
	if len(all) > maxTags {
		return ErrTags
	}
	d.Tags = all
	return nil
}
