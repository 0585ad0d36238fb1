package transform

import (
	"errors"
	"slices"
	"strings"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform/lang"
	"github.com/tailrace-cdc/replicator/transform/tmpl"
)

// rule is a compiled rule: the first one whose conditions an item meets says what becomes of it.
type rule struct {
	name      string
	src       *lang.Rule
	conds     []condition
	when      *predicate
	captures  []tmpl.Capture
	own       int // how many these are; those of an index stand behind them
	drop      bool
	plans     []*plan // the main row, then index rows
	onRemove  string
	onTTL     string
	archive   *family // archive:<family>
	needOld   bool    // old images are needed to know what to delete
	heals     bool
	dead      bool              // an earlier rule takes all its items
	want      func(string) bool // attributes to decode; nil = all
	wantNames map[string]bool
	wantAll   bool
}

// plan is one row that a rule writes.
type plan struct {
	name      string
	rule      *rule
	src       *lang.Text
	captures  []tmpl.Capture // the rule's and, of an index, its own
	conds     []condition
	when      *predicate
	row       *tmpl.Template
	class     Class
	exclusive bool
	why       string   // why it has this class
	history   []string // families with versions to keep
	spared    []string // what a wipe of the row spares: history, and the archive
	emitters  []*Emitter
	collide   bool // two emitters may give one cell: compare at run time
	cascade   bool // on_remove: row
	wipeable  bool // a cascade may delete the row: its own, or another rule's
}

type family struct {
	Family
	history bool // more than the newest version is wanted
	expires bool
	removed string
	at      lang.Text
}

// condition tests one attribute.
type condition struct {
	attr    string
	key     bool
	pattern *tmpl.Pattern
	equals  *string
	in      []string
	typ     string
	exists  *bool
}

func (c *condition) holds(img change.Image, caps []string) bool {
	v := img.Get(c.attr)
	if c.exists != nil && *c.exists != (v != nil) {
		return false
	}
	if c.typ != "" && (v == nil || v.Kind.String() != c.typ) {
		return false
	}
	if c.pattern == nil && c.equals == nil && c.in == nil {
		return true
	}
	if v == nil || v.Kind == change.KindNull {
		return false
	}
	text, err := tmpl.Scalar(c.attr, v)
	switch {
	case err != nil:
		return false
	case c.equals != nil && text != *c.equals:
		return false
	case c.in != nil && !slices.Contains(c.in, text):
		return false
	}
	return c.pattern == nil || c.pattern.Match(text, caps)
}

// matches tests an item against conditions; captures go to caps.
func matches(conds []condition, when *predicate, img change.Image, caps []string) (bool, error) {
	for i := range conds {
		if !conds[i].holds(img, caps) {
			return false, nil
		}
	}
	if when == nil {
		return true, nil
	}
	return when.holds(img)
}

// pick returns the rule of an item and leaves its captures in the scope; nil when none matches.
func (p *Program) pick(x *Eval) (*rule, error) {
	for _, r := range p.rules {
		x.Scope.Caps = x.Captures
		ok, err := matches(r.conds, r.when, x.Scope.Image, x.Scope.Caps)
		if err != nil {
			return nil, err
		}
		if ok {
			return r, nil
		}
	}
	return nil, nil
}

// refusal turns what a template or an encoding says into a Refusal with its place.
func refusal(code string, err error, format string, args ...any) error {
	if r := (*Refusal)(nil); errors.As(err, &r) {
		code = r.Code
		return tmpl.Refuse(code, format+": %s", append(args, r.What)...)
	}
	return tmpl.Refuse(code, format+": %s", append(args, err.Error())...)
}

func globalAttribute(name string) bool { return strings.HasPrefix(name, "aws:rep:") }
