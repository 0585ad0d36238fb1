package plants

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform"
)

// Rule is a rule of a mapping in the oracle: what it was made of.
type Rule struct {
	Table   int
	Prefix  string // of the sort keys that it takes
	Own     bool   // a row for each item, else one for all items of a partition
	Typed   bool   // columns name the types of values, and have no inverse
	Wild    bool   // columns for all attributes
	Keep    bool   // on_ttl_expiry: keep
	Tomb    bool   // on_remove: tombstone
	Indexed bool   // a second row, named by an attribute
	History bool   // attribute h in a family that keeps versions
	Removed string // of that family
	Aging   bool   // attribute a in a family whose cells age
	Hides   string // the attributes under pii: some of p, s and z
}

// families are the families of every mapping. removed is the policy of the family of histories.
func families(removed string) string {
	return fmt.Sprintf("families: {d: {max_versions: 1}, h: {max_versions: 3, removed: %s}, a: {max_age: 1h}}\n", removed)
}

// text returns the rule as its author would write it.
func (r *Rule) text(number int) string {
	var b strings.Builder
	name := fmt.Sprintf("t%dr%d", r.Table, number)
	row, column := "sh#{p}", fmt.Sprintf("%s/{s}/", name)
	if r.Own {
		row, column = name+"#{p}#{s}", ""
	}
	fmt.Fprintf(&b, "- name: %s\n  match: {pk: \"{p}\", sk: \"%s{s}\"}\n  row: %q\n  segments: escape\n", name, r.Prefix,
		row)
	if r.Keep {
		b.WriteString("  on_ttl_expiry: keep\n")
	}
	if r.Tomb {
		b.WriteString("  on_remove: tombstone\n")
	}
	b.WriteString("  cells:\n")
	except := "pk, sk, site"
	if r.History {
		fmt.Fprintf(&b, "  - {attr: h, to: \"h:%sh\"}\n", column)
		except += ", h"
	}
	if r.Aging {
		fmt.Fprintf(&b, "  - {attr: a, to: \"a:%sa\"}\n", column)
		except += ", a"
	}
	switch {
	case r.Typed:
		fmt.Fprintf(&b, "  - {attrs: all, except: [%s], to: \"d:%s{attr}/{type}\"}\n", except, column)
	case r.Wild:
		fmt.Fprintf(&b, "  - {attrs: all, except: [%s], to: \"d:%s{attr}\"}\n", except, column)
	default:
		fmt.Fprintf(&b, "  - {attr: x, to: \"d:%sx\"}\n  - {attr: y, to: \"d:%sy\"}\n", column, column)
	}
	if r.Indexed {
		fmt.Fprintf(&b, "  index: [{name: by, row: \"%s-by#{site}#{p}#{s}\", cells: [{attr: x, to: \"d:x\"}]}]\n", name)
	}
	return r.hide(b.String())
}

// hide hashes the parts of keys that the table lists under pii, wherever rows and columns name
// them.
func (r *Rule) hide(text string) string {
	head, rest, _ := strings.Cut(text, "  row:")
	for _, part := range []string{"p", "s"} {
		if strings.Contains(r.Hides, part) {
			rest = strings.ReplaceAll(rest, "{"+part+"}", "{"+part+"|hmac(k,16)}")
		}
	}
	return head + "  row:" + rest
}

// personal declares the attributes that a table lists under pii.
func personal(hides string) string {
	var names []string
	for i, part := range []string{"p", "s", "z"} {
		if strings.Contains(hides, part) {
			names = append(names, []string{"pk", "sk", "z"}[i])
		}
	}
	if names == nil {
		return ""
	}
	return fmt.Sprintf("secrets: {k: for tests alone}\npii: [%s]\n", strings.Join(names, ", "))
}

func chance(r *rand.Rand, of int) bool { return r.IntN(of) == 0 }

// draw draws the rules of a table.
func draw(rnd *rand.Rand, table int, removed string) (rules []*Rule) {
	hides := []string{"", "", "", "p", "s", "ps", "z", "pz"}[rnd.IntN(8)]
	for i := range 1 + rnd.IntN(3) {
		r := &Rule{Table: table, Hides: hides, Prefix: fmt.Sprintf("k%d-", i), Own: chance(rnd, 2), Keep: chance(rnd, 3),
			Removed: removed,
			History: chance(rnd, 2), Aging: chance(rnd, 3), Tomb: chance(rnd, 4)}
		switch rnd.IntN(3) {
		case 0:
			r.Wild = true
		case 1:
			r.Typed = chance(rnd, 2)
		}
		if r.Typed && !r.Own {
			r.Keep = false // nothing shows whose the cells are that such a rule keeps: they are unproven
		}
		r.Indexed = !r.Keep && chance(rnd, 3)
		rules = append(rules, r)
	}
	return rules
}

// Mapping draws the mapping of one table that compiles, with the rules that it was made of.
func Mapping(seed uint64) (text string, rules []*Rule) {
	rnd := rand.New(rand.NewPCG(seed, 31))
	for {
		removed := []string{"delete", "keep", "empty"}[rnd.IntN(3)]
		rules = draw(rnd, 0, removed)
		if texts, programs := compile(rules, 1, removed); programs != nil {
			return texts[0], rules
		}
	}
}

// compile compiles the mappings of all tables; nil where the compiler takes them not.
func compile(rules []*Rule, tables int, removed string) (texts []string, programs []*transform.Program) {
	var all []transform.Table
	for t := range tables {
		hides, text, n := "", "", 0
		for _, r := range rules {
			if r.Table == t {
				hides = r.Hides
				text += r.text(n)
				n++
			}
		}
		text = "mapping: 1\n" + personal(hides) + families(removed) + "rules:\n" + text
		m, _ := transform.ParseMapping("random.yaml", []byte(text))
		if m == nil {
			return nil, nil
		}
		texts = append(texts, text)
		all = append(all, transform.Table{Pipeline: "p", Source: sourceOf(t), Target: "target", Mapping: m,
			View: "NEW_AND_OLD_IMAGES", Schema: change.KeySchema{Partition: change.KeyAttr{Name: "pk", Type: 'S'},
				Sort: &change.KeyAttr{Name: "sk", Type: 'S'}}})
	}
	programs, _ = transform.CompileAll(all)
	for _, p := range programs {
		if p == nil {
			return texts, nil
		}
	}
	return texts, programs
}

func sourceOf(table int) string { return string(rune('S' + table)) }
