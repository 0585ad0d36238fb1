package propose

import (
	"cmp"
	"slices"
	"strings"
)

// form is the way in which a key is built: a word, "#" and an id; a word alone; or, as the zero
// form, anything.
type form struct {
	word  string
	alone bool
}

// formOf returns the form of a key. It takes only capitals as words, as single-table designs write
// them, so that names of tenants are not taken for words.
func formOf(text string) form {
	word, _, prefix := strings.Cut(text, "#")
	if strings.Trim(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != "" || strings.Trim(word, "0123456789_-") == "" {
		return form{}
	}
	return form{word: word, alone: !prefix}
}

// pair holds the forms of partition and sort key.
type pair struct{ pk, sk form }

// tally counts the items with a pair of forms, and how many of them each index holds.
type tally struct {
	items   int
	indexed map[string]int
}

// kind is a kind of item that gets its own rule. The zero form stands for any key.
type kind struct {
	pair
	indexed map[string]int
}

// A single-table design is recognized in a sample of at least minItems, by forms that are frequent
// and together cover nearly all items.
const (
	minItems     = 8
	minShare     = 50 // a frequent form has at least one of 50 items
	maxUncovered = 20 // at most one of 20 items has another form
)

// frequentForms returns the forms with words that are frequent, in order, and whether they cover
// nearly all items.
func frequentForms(counts map[form]int) (out []form, cover bool) {
	all, covered := 0, 0
	for _, n := range counts {
		all += n
	}
	for f, n := range counts {
		if f.word != "" && n >= 2 && n*minShare >= all {
			out = append(out, f)
			covered += n
		}
	}
	slices.SortFunc(out, func(a, b form) int {
		return cmp.Or(strings.Compare(a.word, b.word), cmp.Compare(number(a.alone), number(b.alone)))
	})
	return out, covered > 0 && (all-covered)*maxUncovered <= all
}

// number returns 1 for true, to sort by.
func number(b bool) int {
	if b {
		return 1
	}
	return 0
}

// kinds returns the kinds of items that the words in keys show, nil if one rule will do. prefixed
// is true if partition keys have words too.
func (s *Sampler) kinds() (out []kind, prefixed bool) {
	if s.items < minItems {
		return nil, false
	}
	pks := map[form]int{}
	for p, n := range s.pairs {
		if p.pk.alone {
			p.pk = form{} // no id follows, so the word says nothing
		}
		pks[p.pk] += n.items
	}
	words, prefixed := frequentForms(pks)
	if !prefixed {
		words = []form{{}}
	}
	for _, w := range words {
		out = append(out, s.kindsOf(w, prefixed)...)
	}
	if !prefixed && (len(out) < 2 || out[0].sk == form{}) {
		return nil, false // one rule will do
	}
	return out, prefixed
}

// kindsOf returns the kinds of items below one word of partition keys, divided by the words in sort
// keys if these cover nearly all items.
func (s *Sampler) kindsOf(word form, prefixed bool) (out []kind) {
	sks := map[form]int{}
	for p, n := range s.pairs {
		if !prefixed || p.pk == word {
			sks[p.sk] += n.items
		}
	}
	forms, covered := frequentForms(sks)
	if !covered {
		forms = []form{{}}
	}
	for _, f := range forms {
		k := kind{pair: pair{word, f}, indexed: map[string]int{}}
		for p, n := range s.pairs {
			if (!prefixed || p.pk == word) && (!covered || p.sk == f) {
				for name := range n.indexed {
					k.indexed[name] += n.indexed[name]
				}
			}
		}
		out = append(out, k)
	}
	return out
}

// names hands out unique names for captures and rules.
type names struct{ taken map[string]bool }

// reserved are the variables of wildcard columns.
var reserved = []string{"attr", "path", "type", "salt"}

func (s *Sampler) names() *names {
	n := &names{taken: map[string]bool{}}
	for _, r := range reserved {
		n.taken[r] = true
	}
	for _, x := range s.src.Indexes { // a capture would hide the attribute that the rows of an index name
		for _, k := range x.Key {
			n.taken[k.Name] = !s.isKey(k.Name)
		}
	}
	return n
}

// unique returns a name made from a word, and reserves it.
func (n *names) unique(word string) string {
	name := strings.ReplaceAll(strings.ToLower(word), "-", "_")
	if strings.Trim(name[:1], "0123456789_") == "" {
		name = "k" + name
	}
	for n.taken[name] {
		name += "_id"
	}
	n.taken[name] = true
	return name
}

func (s *Sampler) isKey(name string) bool {
	k := s.src.Schema
	return name == k.Partition.Name || k.Sort != nil && name == k.Sort.Name
}
