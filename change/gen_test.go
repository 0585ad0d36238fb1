package change

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"

	"pgregory.net/rapid"
)

// The generators make values, items and pages; the notation below writes them as JSON in any of the
// ways that a server may choose: white space, escapes and order differ from one seed to the next.

func genNumber() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		digits := rapid.StringMatching(`[0-9]{1,38}`).Draw(t, "digits")
		if cut := rapid.IntRange(0, len(digits)).Draw(t, "cut"); cut > 0 && cut < len(digits) {
			digits = digits[:cut] + "." + digits[cut:]
		}
		exp := ""
		if rapid.Bool().Draw(t, "scientific") {
			exp = fmt.Sprintf("E%+d", rapid.IntRange(-90, 80).Draw(t, "exp"))
		}
		return rapid.SampledFrom([]string{"", "-"}).Draw(t, "sign") + digits + exp
	})
}

func genText() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.StringN(0, 12, -1),
		rapid.StringMatching(`[a-z "\\/\n\t{}\[\],:]{0,40}`),
		rapid.SampledFrom([]string{"", "é", "日本", "😀", "\u2028", "\x00\x1f", `\u0041`, `"`, `\`}),
	)
}

func genBase64() *rapid.Generator[string] {
	return rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 20), base64.StdEncoding.EncodeToString)
}

func genScalar(k Kind) *rapid.Generator[Value] {
	texts := map[Kind]*rapid.Generator[string]{KindString: genText(), KindNumber: genNumber(), KindBinary: genBase64()}
	return rapid.Map(texts[k], func(s string) Value { return Value{Kind: k, S: s} })
}

func genValue(depth int) *rapid.Generator[Value] {
	return rapid.Custom(func(t *rapid.T) Value {
		kinds := []Kind{KindNull, KindBool, KindString, KindNumber, KindBinary, KindStringSet, KindNumberSet, KindBinarySet}
		if depth > 0 {
			kinds = append(kinds, KindList, KindMap)
		}
		v := Value{Kind: rapid.SampledFrom(kinds).Draw(t, "kind")}
		switch v.Kind {
		case KindBool:
			v.Bool = rapid.Bool().Draw(t, "bool")
		case KindString, KindNumber, KindBinary:
			v = genScalar(v.Kind).Draw(t, "scalar")
		case KindStringSet, KindNumberSet, KindBinarySet:
			member := v.Kind - KindStringSet + KindString
			v.L = rapid.SliceOfN(genScalar(member), 0, 4).Draw(t, "set")
		case KindList:
			v.L = rapid.SliceOfN(genValue(depth-1), 0, 4).Draw(t, "list")
		case KindMap:
			v.M = genImage(depth-1).Draw(t, "map")
		}
		return v
	})
}

func genImage(depth int) *rapid.Generator[Image] {
	return rapid.Custom(func(t *rapid.T) Image {
		names := rapid.SliceOfNDistinct(genText(), 0, 5, rapid.ID).Draw(t, "names")
		m := Image{}
		for _, n := range names {
			m = append(m, Attr{n, genValue(depth).Draw(t, "value")})
		}
		return m
	})
}

// notation writes JSON, each time another way.
type notation struct{ *rand.Rand }

func notationOf(t *rapid.T) notation {
	return notation{rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "notation"), 1))}
}

func (n notation) gap() string {
	return strings.Repeat([]string{" ", "\n", "\t", "\r"}[n.IntN(4)], max(0, n.IntN(8)-5))
}

func (n notation) text(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r < ' ' || n.IntN(12) == 0:
			if a, z := utf16.EncodeRune(r); a != 0xfffd {
				fmt.Fprintf(&b, `\u%04x\u%04X`, a, z)
			} else {
				fmt.Fprintf(&b, `\u%04x`, r)
			}
		case r == '"' || r == '\\' || r == '/' && n.IntN(2) == 0:
			b.WriteByte('\\')
			b.WriteRune(r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

func (n notation) list(open, shut string, elems []string) string {
	var b strings.Builder
	b.WriteString(open + n.gap())
	for i, e := range elems {
		if i > 0 {
			b.WriteString("," + n.gap())
		}
		b.WriteString(e + n.gap())
	}
	return b.String() + shut
}

func (n notation) member(name, value string) string { return name + n.gap() + ":" + n.gap() + value }

func (n notation) value(v Value) string {
	var x string
	switch v.Kind {
	case KindNull:
		x = "true"
	case KindBool:
		x = strconv.FormatBool(v.Bool)
	case KindString, KindNumber, KindBinary:
		x = n.text(v.S)
	case KindMap:
		x = n.image(v.M)
	default:
		var elems []string
		for _, e := range v.L {
			if v.Kind == KindList {
				elems = append(elems, n.value(e))
			} else {
				elems = append(elems, n.text(e.S))
			}
		}
		x = n.list("[", "]", elems)
	}
	return n.list("{", "}", []string{n.member(`"`+v.Kind.String()+`"`, x)})
}

func (n notation) image(m Image) string {
	var elems []string
	for _, a := range m {
		elems = append(elems, n.member(n.text(a.Name), n.value(a.Value)))
	}
	return n.list("{", "}", elems)
}

// shuffled returns an equal value: members of maps and sets in another order, numbers spelled
// otherwise.
func (n notation) shuffled(v Value) Value {
	if _, err := CanonicalNumber(v.S); v.Kind == KindNumber && err == nil && n.IntN(2) == 0 {
		sign := v.S[:len(v.S)-len(strings.TrimPrefix(v.S, "-"))]
		v.S = sign + "0" + v.S[len(sign):]
	}
	v.L, v.M = slices.Clone(v.L), slices.Clone(v.M)
	for i := range v.L {
		v.L[i] = n.shuffled(v.L[i])
	}
	for i := range v.M {
		v.M[i].Value = n.shuffled(v.M[i].Value)
	}
	n.Shuffle(len(v.M), func(i, j int) { v.M[i], v.M[j] = v.M[j], v.M[i] })
	if v.Kind != KindList {
		n.Shuffle(len(v.L), func(i, j int) { v.L[i], v.L[j] = v.L[j], v.L[i] })
	}
	return v
}

// event is a stream record as the service knows it.
type event struct {
	Op             Op
	Keys, New, Old Image // nil: absent
	Seq, ID        string
	Seconds        int64
	TTL            bool
}

func genEvent() *rapid.Generator[event] {
	return rapid.Custom(func(t *rapid.T) event {
		e := event{
			Op:      rapid.SampledFrom([]Op{Insert, Modify, Remove}).Draw(t, "op"),
			Keys:    Image{{"pk", genScalar(KindString).Draw(t, "pk")}},
			Seq:     rapid.StringMatching(`[1-9][0-9]{20,39}`).Draw(t, "seq"),
			ID:      rapid.StringMatching(`[0-9a-f]{32}`).Draw(t, "id"),
			Seconds: rapid.Int64Range(1_600_000_000, 1_900_000_000).Draw(t, "created"),
		}
		if e.Op != Remove {
			e.New = append(slices.Clone(e.Keys), genImage(2).Draw(t, "new")...)
		}
		if e.Op != Insert {
			e.Old = append(slices.Clone(e.Keys), genImage(2).Draw(t, "old")...)
		}
		e.TTL = e.Op == Remove && rapid.Bool().Draw(t, "ttl")
		return e
	})
}

// event writes a record with its members in any order and, where the service could leave it out,
// null.
func (n notation) event(e event) string {
	body := []string{
		n.member(`"SequenceNumber"`, `"`+e.Seq+`"`), n.member(`"Keys"`, n.image(e.Keys)),
		n.member(`"ApproximateCreationDateTime"`, fmt.Sprint(e.Seconds)+[]string{"", ".0", ".000"}[n.IntN(3)]),
		n.member(`"SizeBytes"`, "17"), n.member(`"StreamViewType"`, `"NEW_AND_OLD_IMAGES"`),
	}
	for name, img := range map[string]Image{`"NewImage"`: e.New, `"OldImage"`: e.Old} {
		if img != nil {
			body = append(body, n.member(name, n.image(img)))
		} else if n.IntN(3) == 0 {
			body = append(body, n.member(name, "null"))
		}
	}
	slices.Sort(body) // the map has no order of its own
	n.Shuffle(len(body), func(i, j int) { body[i], body[j] = body[j], body[i] })
	rec := []string{
		n.member(`"dynamodb"`, n.list("{", "}", body)), n.member(`"eventName"`, `"`+e.Op.String()+`"`),
		n.member(`"eventID"`, `"`+e.ID+`"`), n.member(`"eventVersion"`, `"1.1"`), n.member(`"awsRegion"`, `"eu-west-1"`),
	}
	if e.TTL {
		rec = append(rec, n.member(`"userIdentity"`, `{"PrincipalId":"dynamodb.amazonaws.com","Type":"Service"}`))
	}
	n.Shuffle(len(rec), func(i, j int) { rec[i], rec[j] = rec[j], rec[i] })
	return n.list("{", "}", rec)
}

func (n notation) page(events []event, next string) string {
	var recs []string
	for _, e := range events {
		recs = append(recs, n.event(e))
	}
	body := []string{n.member(`"Records"`, n.list("[", "]", recs))}
	if next != "" {
		body = append(body, n.member(`"NextShardIterator"`, `"`+next+`"`))
	}
	n.Shuffle(len(body), func(i, j int) { body[i], body[j] = body[j], body[i] })
	return n.gap() + n.list("{", "}", body) + n.gap()
}

// seedPages are pages for the corpora of fuzz targets.
func seedPages() (pages []string) {
	for seed := range uint64(20) {
		n := notation{rand.New(rand.NewPCG(seed, 2))}
		pages = append(pages, n.page(rapid.SliceOfN(genEvent(), 0, 3).Example(int(seed)),
			[]string{"", "arn:aws:x|1|abc=="}[seed%2]))
	}
	return pages
}
