package propose

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform/access"
)

// rules returns the proposed rules: one for all items, or one per kind and one for the rest.
//
// Rows of different rules are never equal: rows of a kind begin with its word or have it as the
// second part; all other rows begin with a word that no kind has, or have an empty second part.
func (s *Sampler) rules() (out []proposed) {
	kinds, prefixed := s.kinds()
	pk, rest := s.src.Schema.Partition, proposed{name: "item", keys: access.Quote(s.src.Schema.Partition.Name)}
	captures := s.names()
	p, joint := captures.unique("pk"), "#"
	rest.match, rest.row = fmt.Sprintf("%s: \"{%s}\"", access.Quote(pk.Name), p), access.Reference(pk, p)
	if len(s.src.Indexes) > 0 && !prefixed {
		rest.lead = s.lead("item", "")
	}
	switch {
	case prefixed:
		rest.name, rest.row = "rest", s.lead("rest", "")+rest.row
	case len(kinds) > 0:
		rest.name, joint = "rest", "##"
	}
	if sk := s.src.Schema.Sort; sk != nil {
		c := captures.unique("sk")
		rest.match += fmt.Sprintf(", %s: \"{%s}\"", access.Quote(sk.Name), c)
		rest.row += joint + access.Reference(*sk, c)
		rest.keys += ", " + access.Quote(sk.Name)
	}
	if len(kinds) == 0 {
		return []proposed{rest}
	}
	rest.comment = "Items of no kind above. Without this rule they would be refused; with drop: true they are left out."
	named := &names{taken: map[string]bool{"rest": true}}
	for _, k := range kinds {
		out = append(out, s.ruleOf(k, rest.lead, rest.keys, named))
	}
	out[0].comment = "Keys begin with words: a rule for each kind of items. A partition key's items stand together, as " +
		"in DynamoDB."
	return append(out, rest)
}

// lead returns a prefix for the rows of one index, or of items, that no partition key and no other
// index begins with.
func (s *Sampler) lead(word, index string) string {
	for {
		taken := slices.ContainsFunc(s.src.Indexes, func(x Index) bool { return x.Name == word && x.Name != index })
		for p := range s.pairs {
			taken = taken || p.pk.word == word
		}
		if !taken {
			return word + "#"
		}
		word += "-"
	}
}

// ruleOf returns the rule of a kind.
func (s *Sampler) ruleOf(k kind, lead, keys string, named *names) proposed {
	captures := s.names()
	pk, sk := s.src.Schema.Partition, s.src.Schema.Sort
	pattern, row, words := k.pk.parts(pk, "pk", captures)
	r := proposed{lead: lead, keys: keys, indexed: k.indexed,
		match: fmt.Sprintf("%s: \"%s\"", access.Quote(pk.Name), pattern), row: row}
	if sk != nil {
		pattern, row, more := k.sk.parts(*sk, "sk", captures)
		r.match += fmt.Sprintf(", %s: \"%s\"", access.Quote(sk.Name), pattern)
		r.row += "#" + row
		words = append(words, more...)
	}
	r.name = named.unique(strings.Join(words, "_"))
	return r
}

// parts returns the pattern of a key, its part of the row key, and the words in it.
func (f form) parts(of change.KeyAttr, free string, captures *names) (pattern, row string, words []string) {
	switch {
	case f.word == "":
		c := captures.unique(free)
		return "{" + c + "}", access.Reference(of, c), nil
	case f.alone:
		return f.word, f.word, []string{f.word}
	}
	text := f.word + "#{" + captures.unique(f.word) + "}"
	return text, text, []string{f.word}
}
