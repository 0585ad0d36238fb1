package transform

import (
	"errors"
	"strconv"
	"strings"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform/tmpl"
)

// neverExpires is the cell time of items without expiry in families that expire by timestamp: the year 9999.
const neverExpires = 253402300799000

// time evaluates the emitter's cell time. skip means that the mapping wants no cell without it.
func (e *emitter) time(x *exec) (t int64, mapped, skip bool, err error) {
	if e.ts == nil {
		return 0, false, false, nil
	}
	start := len(x.buf)
	if x.buf, err = e.ts.Append(x.buf, &x.scope); e.family.expires && !e.expiry(x) {
		err = &tmpl.MissingError{Name: strings.Join(e.ts.Attrs, ", ")}
	}
	text := x.buf[start:]
	x.buf = x.buf[:start]
	if m := (*tmpl.MissingError)(nil); errors.As(err, &m) {
		switch e.missing {
		case "version":
			return 0, false, false, nil
		case "skip":
			return 0, false, true, nil
		case "never":
			return neverExpires, true, false, nil
		}
		return 0, false, false, tmpl.Refuse("time", "cell time %q of family %s: %s; see ts_missing", e.ts.Source, e.family.Name, m.Error())
	}
	if err != nil {
		return 0, false, false, refusal("time", err, "cell time of family %s", e.family.Name)
	}
	t, perr := strconv.ParseInt(string(text), 10, 64)
	if perr != nil || t < 0 || t > maxTime {
		return 0, false, false, tmpl.Refuse("time", "cell time %q of family %s is not a time in ms", e.ts.Source, e.family.Name)
	}
	return t, true, false, nil
}

// expiry says whether the item has a time to live as DynamoDB sees it: a whole number; anything else never expires.
// Source: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/howitworks-ttl.html
func (e *emitter) expiry(x *exec) bool {
	for _, name := range e.ts.Attrs {
		v := x.scope.Image.Get(name)
		if v == nil || v.Kind != change.KindNumber {
			return false
		}
		if c, err := change.CanonicalNumber(v.S); err != nil || strings.ContainsAny(c, ".-E") {
			return false
		}
	}
	return true
}
