package sim

// viewKey is what a plain reader looks at: an item in a row.
type viewKey struct {
	item *item
	row  string
}

// view is the last content that the reader got.
type view struct {
	seen   string
	commit int // the earliest commit that shows it
}

// look lets a plain reader read a row: it must get each item as it was after some commit, and never
// an earlier one than before.
func (w *World) look(key string) {
	for _, x := range w.items {
		seen := w.seen(x, key)
		k := viewKey{x, key}
		last := w.readers[k]
		if seen == last.seen {
			continue
		}
		if w.tainted[x] {
			w.readers[k] = view{seen, last.commit}
			continue
		}
		if n := x.shows(key, seen, last.commit); n >= 0 {
			w.readers[k] = view{seen, n}
			continue
		}
		w.misread(x, key, seen, last)
	}
}

// shows returns the first commit from one on that a row shows; -1 for none.
func (x *item) shows(key, seen string, from int) int {
	for n := from; n < len(x.commits); n++ {
		if x.commits[n].rows[key] == seen {
			return n
		}
	}
	return -1
}

func (w *World) misread(x *item, key, seen string, last view) {
	what := "never a mix"
	if n := x.shows(key, seen, 0); n >= 0 {
		if what = "never a step back"; last.seen == "" {
			what = "never a resurrection"
		}
	}
	w.fail(what, "item %d in row %q: %q after %q (commit %d)", x.n, key, seen, last.seen, last.commit)
}
