package ir

import (
	"errors"
	"strconv"
	"strings"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform/tmpl"
)

// CellTime is the time of an emitter's cells, as the mapping gives it.
type CellTime struct {
	Template *tmpl.Template // nil: the version of the write, unless the source gives times
	Missing  string         // where the item lacks an attribute of the template: refuse (default), version, skip, never
	Siblings bool           // `cell_id: ts`: several items share the column, their times distinguish them
}

// NeverExpires is the cell time of items without expiry in families that expire by timestamp: the
// year 9999.
const NeverExpires = 253402300799000

// evaluate returns the cell time of the item in scope. skip is true when the item has no cell time
// and the mapping omits such cells (`ts_missing: skip`).
func (ct *CellTime) evaluate(x *Eval, f *FamilyRule) (t int64, mapped, skip bool, err error) {
	start := len(x.Buf)
	if x.Buf, err = ct.Template.Append(x.Buf, &x.Scope); f.Expires && !ct.isExpiry(x) {
		err = &tmpl.MissingError{Name: strings.Join(ct.Template.Attrs, ", ")}
	}
	text := x.Buf[start:]
	x.Buf = x.Buf[:start]
	if m := (*tmpl.MissingError)(nil); errors.As(err, &m) {
		switch ct.Missing {
		case "version":
			return 0, false, false, nil
		case "skip":
			return 0, false, true, nil
		case "never":
			return NeverExpires, true, false, nil
		}
		return 0, false, false, tmpl.Refuse("time", "cell time %q of family %s: %s; see ts_missing",
			ct.Template.Source, f.Name, m.Error())
	}
	if err != nil {
		return 0, false, false, WrapRefusal("time", err, "cell time of family %s", f.Name)
	}
	t, perr := strconv.ParseInt(string(text), 10, 64)
	if perr != nil || t < 0 || t > MaxTime {
		return 0, false, false, tmpl.Refuse("time", "cell time %q of family %s is not a time in ms", ct.Template.Source,
			f.Name)
	}
	return t, true, false, nil
}

// isExpiry reports whether the item has a time to live that DynamoDB accepts: a whole number; an
// item with any other value never expires. Source:
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/howitworks-ttl.html
func (ct *CellTime) isExpiry(x *Eval) bool {
	for _, name := range ct.Template.Attrs {
		v := x.Scope.Image.Get(name)
		if v == nil || v.Kind != change.KindNumber {
			return false
		}
		if c, err := change.CanonicalNumber(v.S); err != nil || strings.ContainsAny(c, ".-E") {
			return false
		}
	}
	return true
}
