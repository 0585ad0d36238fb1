package tmpl

import "slices"

// Common returns the captures and attributes with values that follow from a text that one of two
// templates gave, whichever it was: the references at the beginning of both, written alike, and
// ending at the same place of the text.
func Common(a, b *Template) map[string]bool {
	common := map[string]bool{}
	for i := range min(len(a.ops), len(b.ops)) {
		x, y := &a.ops[i], &b.ops[i]
		last := i == len(a.ops)-1 && i == len(b.ops)-1
		switch {
		case x.kind == srcLiteral && y.kind == srcLiteral && x.lit == y.lit, x.equalSalt(y):
			continue
		case !x.readsLike(y) || !x.endsLike(y) && !last:
			return common
		case a.Covers[x.name] && b.Covers[x.name]:
			common[x.name] = true
		}
	}
	return common
}

// Begins reports whether two templates begin with the same reference, even if its end in the text
// is unknown.
func Begins(a, b *Template) bool {
	for i := range min(len(a.ops), len(b.ops)) {
		x, y := &a.ops[i], &b.ops[i]
		if x.kind != srcLiteral || y.kind != srcLiteral || x.lit != y.lit {
			return x.readsLike(y)
		}
	}
	return false
}

// readsLike reports whether two references read the same value and write it the same way.
func (o *op) readsLike(p *op) bool {
	if o.kind != p.kind || o.kind == srcLiteral || o.kind == srcSalt || o.name != p.name || o.slot != p.slot {
		return false
	}
	return (o.stop == "" || p.stop == "" || o.mode == p.mode) &&
		slices.EqualFunc(o.filters, p.filters, func(f, g filterStep) bool { return f.src == g.src })
}

// endsLike reports whether two references that read the same value end at the same place of a text:
// by a fixed length, by the same text behind them, or because neither value can hold the first byte
// of the text behind either.
func (o *op) endsLike(p *op) bool {
	switch {
	case o.fixed && p.fixed:
		return true
	case o.stop == "" || p.stop == "":
		return false
	case o.stop == p.stop:
		return true
	case o.mode == SegOrdered: // the delimiter ends both: separate requires it
		return true
	}
	first, other := o.stop[0], p.stop[0]
	return !o.bytes.has(first) && !o.bytes.has(other) && !p.bytes.has(first) && !p.bytes.has(other)
}

func (o *op) equalSalt(p *op) bool {
	return o.kind == srcSalt && p.kind == srcSalt && o.buckets == p.buckets &&
		slices.EqualFunc(o.salt, p.salt,
			func(x, y op) bool { return x.kind == y.kind && x.name == y.name && x.slot == y.slot })
}

// AsNumber records that the text will be parsed as a number, which drops leading zeros and the
// borders between references: a value follows from it only if it is the only reference and has one
// way to be written.
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
		t.Ambiguity = "a number made of several values may be the same for other values: make it from one value"
	}
}
