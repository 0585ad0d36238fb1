package propose

import (
	"cmp"
	"slices"
	"strings"
)

// form is how a key is built: a word and "#" before an id, a word alone, or anything.
type form struct {
	word  string
	alone bool
}

// formOf sees words only where they are written as such designs write them, in capitals: names of tenants are none.
func formOf(text string) form {
	word, _, prefix := strings.Cut(text, "#")
	if strings.Trim(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != "" || strings.Trim(word, "0123456789_-") == "" {
		return form{}
	}
	return form{word: word, alone: !prefix}
}

// pair is the form of partition and sort key.
type pair struct{ pk, sk form }

// seen counts items of a pair, and those of them that each index holds.
type seen struct {
	items   int
	indexed map[string]int
}

// kind is a kind of item that gets a rule of its own. Free forms stand for any key.
type kind struct {
	pair
	indexed map[string]int
}

// A design is recognized in a sample of some size, by forms that are no rarity and cover nearly all of it.
const (
	fewItems = 8
	rarity   = 50 // one of so many
	nearly   = 20 // all but one of so many
)

// common returns the words that are no rarity among items, in order, and whether they cover nearly all of them.
func common(counts map[form]int) (out []form, cover bool) {
	all, covered := 0, 0
	for _, n := range counts {
		all += n
	}
	for f, n := range counts {
		if f.word != "" && n >= 2 && n*rarity >= all {
			out = append(out, f)
			covered += n
		}
	}
	slices.SortFunc(out, func(a, b form) int {
		return cmp.Or(strings.Compare(a.word, b.word), cmp.Compare(yes(a.alone), yes(b.alone)))
	})
	return out, covered > 0 && (all-covered)*nearly <= all
}

func yes(b bool) int {
	if b {
		return 1
	}
	return 0
}

// kinds are the kinds of items that the keys of the sample tell, none where they tell none. Prefixed says that the
// partition keys tell them too.
func (s *Sampler) kinds() (out []kind, prefixed bool) {
	if s.items < fewItems {
		return nil, false
	}
	pks := map[form]int{}
	for p, n := range s.pairs {
		if p.pk.alone {
			p.pk = form{} // no id follows: a word by chance
		}
		pks[p.pk] += n.items
	}
	words, prefixed := common(pks)
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

// kindsOf are the kinds of items below one word of partition keys: by their sort keys where those tell them.
func (s *Sampler) kindsOf(word form, prefixed bool) (out []kind) {
	sks := map[form]int{}
	for p, n := range s.pairs {
		if !prefixed || p.pk == word {
			sks[p.sk] += n.items
		}
	}
	forms, told := common(sks)
	if !told {
		forms = []form{{}}
	}
	for _, f := range forms {
		k := kind{pair: pair{word, f}, indexed: map[string]int{}}
		for p, n := range s.pairs {
			if (!prefixed || p.pk == word) && (!told || p.sk == f) {
				for name := range n.indexed {
					k.indexed[name] += n.indexed[name]
				}
			}
		}
		out = append(out, k)
	}
	return out
}

// names gives captures and rules names that nothing else has.
type names struct{ taken map[string]bool }

// reserved are names that templates of wildcard columns know.
var reserved = []string{"attr", "path", "type", "salt"}

func (s *Sampler) names() *names {
	n := &names{taken: map[string]bool{}}
	for _, r := range reserved {
		n.taken[r] = true
	}
	for _, x := range s.src.Indexes { // index rows name attributes: a capture of that name would stand before them
		n.taken[x.Schema.Partition.Name] = !s.isKey(x.Schema.Partition.Name)
		if x.Schema.Sort != nil {
			n.taken[x.Schema.Sort.Name] = !s.isKey(x.Schema.Sort.Name)
		}
	}
	return n
}

// of makes a name of a word.
func (n *names) of(word string) string {
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
