package tmpl

import "slices"

// Common names the captures and attributes that can be told from a text of which it is not known whether the one
// or the other template gave it: those that stand at the beginning of both, written alike and ended where a reader of
// either would end them.
func Common(a, b *Template) map[string]bool {
	told := map[string]bool{}
	for i := range min(len(a.ops), len(b.ops)) {
		x, y := &a.ops[i], &b.ops[i]
		last := i == len(a.ops)-1 && i == len(b.ops)-1
		switch {
		case x.kind == srcLiteral && y.kind == srcLiteral && x.lit == y.lit, x.sameSalt(y):
			continue
		case !x.reads(y) || !x.ends(y) && !last:
			return told
		case a.Covers[x.name] && b.Covers[x.name]:
			told[x.name] = true
		}
	}
	return told
}

// Begins says whether two templates begin with the same reference, whether or not it can be told where it ends.
func Begins(a, b *Template) bool {
	for i := range min(len(a.ops), len(b.ops)) {
		x, y := &a.ops[i], &b.ops[i]
		if x.kind != srcLiteral || y.kind != srcLiteral || x.lit != y.lit {
			return x.reads(y)
		}
	}
	return false
}

// reads says that two references read the same and write it the same way.
func (o *op) reads(p *op) bool {
	if o.kind != p.kind || o.kind == srcLiteral || o.kind == srcSalt || o.name != p.name || o.slot != p.slot {
		return false
	}
	return (o.stop == "" || p.stop == "" || o.mode == p.mode) &&
		slices.EqualFunc(o.filters, p.filters, func(f, g filter) bool { return f.src == g.src })
}

// ends says that two references that read the same end at the same place of a text: by their length, by the same
// words behind them, or because neither value holds the first byte of what follows either.
func (o *op) ends(p *op) bool {
	switch {
	case o.fixed && p.fixed:
		return true
	case o.stop == "" || p.stop == "":
		return false
	case o.stop == p.stop:
		return true
	case o.mode == SegOrdered: // the delimiter ends both: it was demanded
		return true
	}
	first, other := o.stop[0], p.stop[0]
	return !o.bytes.has(first) && !o.bytes.has(other) && !p.bytes.has(first) && !p.bytes.has(other)
}

func (o *op) sameSalt(p *op) bool {
	return o.kind == srcSalt && p.kind == srcSalt && o.buckets == p.buckets &&
		slices.EqualFunc(o.salt, p.salt,
			func(x, y op) bool { return x.kind == y.kind && x.name == y.name && x.slot == y.slot })
}

// AsNumber says that the text will be read as a number, which forgets leading zeros and where one reference ends and
// the next begins: a value can be told from it only if it stands alone and is written in one way.
func (t *Template) AsNumber() {
	references := 0
	for i := range t.ops {
		o := &t.ops[i]
		if o.kind == srcLiteral {
			continue
		}
		references++
		canonical := o.number && len(o.filters) == 0
		if n := len(o.filters); n > 0 {
			canonical = slices.Contains([]string{"int", "pad", "revms", "rev64", "s_ms"}, o.filters[n-1].name)
		}
		if !canonical {
			delete(t.Covers, o.name)
		}
	}
	if references > 1 {
		t.Ambig = "a number made of several values may be the same for others: take it from one"
	}
}
