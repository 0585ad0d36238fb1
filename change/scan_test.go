package change

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/big"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

const minimal = `{"eventName":"INSERT","dynamodb":{"Keys":{"pk":{"S":"a"}},"SequenceNumber":"1",` +
	`"ApproximateCreationDateTime":5}}`

func TestMalformedPageIsRefused(t *testing.T) {
	for name, body := range map[string]string{
		"empty":                      ``,
		"no object":                  `[]`,
		"no records would end shard": `{}`,
		"records null":               `{"Records":null}`,
		"an error document":          `{"__type":"com.amazon#InternalFailure","message":"x"}`,
		"unknown event":              `{"Records":[` + strings.Replace(minimal, "INSERT", "UPSERT", 1) + `]}`,
		"no event":                   `{"Records":[` + strings.Replace(minimal, "eventName", "eventNam", 1) + `]}`,
		"no sequence number":         `{"Records":[` + strings.Replace(minimal, "SequenceN", "N", 1) + `]}`,
		"sequence number no string":  `{"Records":[` + strings.Replace(minimal, `"1"`, `1`, 1) + `]}`,
		"no keys":                    `{"Records":[` + strings.Replace(minimal, "Keys", "Kees", 1) + `]}`,
		"keys null":                  `{"Records":[` + strings.Replace(minimal, `{"pk":{"S":"a"}}`, `null`, 1) + `]}`,
		"time as text":               `{"Records":[` + strings.Replace(minimal, ":5", `:"2026-11-21T00:00:00Z"`, 1) + `]}`,
		"time beyond the calendar":   `{"Records":[` + strings.Replace(minimal, ":5", `:99999999999999999`, 1) + `]}`,
		"time below zero":            `{"Records":[` + strings.Replace(minimal, ":5", `:-5`, 1) + `]}`,
		"time infinite":              `{"Records":[` + strings.Replace(minimal, ":5", `:1e999`, 1) + `]}`,
		"garbage behind":             `{"Records":[]}x`,
		"two documents":              `{"Records":[]}{"Records":[]}`,
		"comma at the end":           `{"Records":[` + minimal + `,]}`,
		"open string":                `{"Records":[],"NextShardIterator":"abc`,
		"backslash at the end":       `{"Records":[],"NextShardIterator":"abc\`,
	} {
		if recs, next, err := ScanPage([]byte(body), nil); !errors.Is(err, ErrMalformed) || recs != nil || next != nil {
			t.Errorf("%s: %d records, next %q, error %v; want nothing and ErrMalformed", name, len(recs), next, err)
		}
	}
}

// A connection may break at any byte: half a page must never pass for a whole one.
func TestPageCutAnywhereIsRefused(t *testing.T) {
	for _, page := range seedPages() {
		page = strings.TrimSpace(page)
		for i := range len(page) {
			if _, _, err := ScanPage([]byte(page[:i]), nil); !errors.Is(err, ErrMalformed) {
				t.Fatalf("cut at %d of %d: %v\n%s", i, len(page), err, page[:i])
			}
		}
	}
}

func TestTimesInEveryNotation(t *testing.T) {
	for in, want := range map[string]int64{
		"1795257720": 1795257720000, "1795257720.0": 1795257720000, "1795257720.000": 1795257720000,
		"1795257720.5": 1795257720500, "1795257720.123987": 1795257720123, "1.79525772E9": 1795257720000,
		"1.79525772e+9": 1795257720000, "0": 0, "253402300799": 253402300799000,
		"253402300800": -1, "": -1, "true": -1, "1x": -1, "1.5.5": -1, "123456789012345678901": -1,
	} {
		if got := millis([]byte(in)); got != Millis(want) {
			t.Errorf("%s is %d, want %d", in, got, want)
		}
	}
}

func TestUsersDeleteIsNotTakenForTTL(t *testing.T) {
	for identity, want := range map[string]bool{
		`{"Type":"Service","PrincipalId":"dynamodb.amazonaws.com"}`:             true,
		`{ "PrincipalId" : "dynamodb.amazonaws.com" , "Type" : "Service" }`:     true,
		`{"Type":"Service","PrincipalId":"replication.dynamodb.amazonaws.com"}`: false,
		`{"Type":"AssumedRole","PrincipalId":"dynamodb.amazonaws.com"}`:         false,
		`{"Type":"Service"}`: false,
		// an event for Lambda: the SDKs read nothing
		`{"type":"Service","principalId":"dynamodb.amazonaws.com"}`:       false,
		`{"x":{"Type":"Service","PrincipalId":"dynamodb.amazonaws.com"}}`: false,
		`null`: false,
	} {
		r, err := ScanRecord([]byte(strings.Replace(minimal, `{`, `{"userIdentity":`+identity+`,`, 1)))
		if err != nil || r.TTL != want {
			t.Errorf("%s: TTL %t, want %t (%v)", identity, r.TTL, want, err)
		}
	}
}

// What an application stores must not be taken for the structure around it.
func TestRecordInsideAStringIsNoRecord(t *testing.T) {
	for pad := range 20 {
		trap, err := json.Marshal(strings.Repeat("x", pad) + `"}],"Records":[` + minimal + `\"{[` + "\\")
		if err != nil {
			t.Fatal(err)
		}
		page := `{"Records":[` + strings.Replace(minimal, `"S":"a"`, `"S":`+string(trap), 1) + `,` + minimal + `]}`
		recs, _, err := ScanPage([]byte(page), nil)
		if err != nil || len(recs) != 2 {
			t.Fatalf("pad %d: %d records, %v", pad, len(recs), err)
		}
	}
}

func TestPageIsScannedAsItWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events := rapid.SliceOfN(genEvent(), 0, 4).Draw(t, "events")
		next := rapid.SampledFrom([]string{"", "abc"}).Draw(t, "next")
		dirty := make([]Record, 7)
		dirty[0].TTL, dirty[0].Version, dirty[0].New = true, 7, []byte("{}")
		recs, got, err := ScanPage([]byte(notationOf(t).page(events, next)), dirty)
		if err != nil || string(got) != next || (got == nil) != (next == "") || len(recs) != len(events) {
			t.Fatalf("%d records, next %q, %v; want %d, %q", len(recs), got, err, len(events), next)
		}
		for i, r := range recs {
			if d := cmp.Diff(events[i], eventOf(t, r)); d != "" {
				t.Fatal(d)
			}
			again, err := ScanRecord(r.Raw)
			if d := cmp.Diff(r, again); d != "" || err != nil {
				t.Fatal(err, d)
			}
		}
	})
}

func eventOf(t *rapid.T, r Record) event {
	var d Decoder
	image := func(raw []byte) Image {
		m, err := d.Image(raw)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	return event{Op: r.Op, Keys: image(r.Keys), New: image(r.New), Old: image(r.Old), Seq: string(r.SequenceNumber),
		ID: string(r.EventID), Seconds: int64(r.Created / 1000), TTL: r.TTL}
}

// FuzzScanPage holds the scanner to encoding/json: of valid JSON it must find the same records, and
// take and refuse the same pages. What is no JSON it may take (it validates nothing inside images),
// but never leave the page.
func FuzzScanPage(f *testing.F) {
	for _, p := range seedPages() {
		f.Add([]byte(p))
	}
	f.Add([]byte(`{"Records":[` + minimal + `]}`))
	f.Add([]byte(`{"Records":[{"dynamodb":{"Keys":{},"Keys":null}}],"NextShardIterator":"\""}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		recs, next, err := ScanPage(body, nil)
		for _, r := range recs {
			for _, part := range [][]byte{r.Raw, r.Keys, r.New, r.Old, r.SequenceNumber, r.EventID} {
				if !bytes.Contains(body, part) {
					t.Fatalf("%q is no part of the page", part)
				}
			}
			AppendRecords(nil, recs)
		}
		if !json.Valid(body) || bytes.Contains(body, []byte(`\u00`)) {
			return // names may be written with escapes, which no server does
		}
		want, wantNext, ok := oraclePage(body)
		if ok != (err == nil) {
			t.Fatalf("error %v, encoding/json says %t: %s", err, ok, body)
		}
		if err != nil {
			return
		}
		if string(next) != wantNext {
			t.Fatalf("next %q, want %q", next, wantNext)
		}
		if d := cmp.Diff(want, recs); d != "" {
			t.Fatal(d)
		}
	})
}

type member struct {
	name  string
	value json.RawMessage
}

// members are the members of an object in their order, duplicates included.
func members(raw []byte) (all []member, ok bool) {
	d := json.NewDecoder(bytes.NewReader(raw))
	if tok, err := d.Token(); err != nil || tok != json.Delim('{') {
		return nil, false
	}
	for d.More() {
		name, err := d.Token()
		var m member
		if err != nil || d.Decode(&m.value) != nil {
			return nil, false
		}
		m.name = name.(string)
		all = append(all, m)
	}
	return all, true
}

func oraclePage(body []byte) (recs []Record, next string, ok bool) {
	all, ok := members(body)
	seen := false
	recs = []Record{}
	for _, m := range all {
		switch m.name {
		case "NextShardIterator":
			if s := unquoted(m.value); s != nil {
				next = string(s)
			}
		case "Records":
			var list []json.RawMessage
			if m.value[0] != '[' || json.Unmarshal(m.value, &list) != nil {
				return nil, "", false
			}
			seen = true
			for _, raw := range list {
				r, good := oracleRecord(raw)
				ok = ok && good
				recs = append(recs, r)
			}
		}
	}
	if len(recs) == 0 {
		recs = nil
	}
	return recs, next, ok && seen
}

func oracleRecord(raw []byte) (r Record, ok bool) {
	all, ok := members(raw)
	if !ok {
		return r, false
	}
	r.Raw = raw
	for _, m := range all {
		switch m.name {
		case "eventName":
			r.Op = map[string]Op{`"INSERT"`: Insert, `"MODIFY"`: Modify, `"REMOVE"`: Remove}[string(m.value)]
		case "eventID":
			r.EventID = unquoted(m.value)
		case "userIdentity":
			r.TTL = isTTL(m.value)
		case "dynamodb":
			body, good := members(m.value)
			if !good {
				return r, false
			}
			for _, b := range body {
				oracleBody(&r, b)
			}
		}
	}
	return r, r.Op != 0 && r.Keys != nil && len(r.SequenceNumber) > 0 && r.Created >= 0
}

func oracleBody(r *Record, m member) {
	part := []byte(m.value)
	if string(part) == "null" {
		part = nil
	}
	switch m.name {
	case "Keys":
		r.Keys = part
	case "NewImage":
		r.New = part
	case "OldImage":
		r.Old = part
	case "SequenceNumber":
		r.SequenceNumber = unquoted(m.value)
	case "SizeBytes":
		r.Size, _ = digits(m.value)
	case "ApproximateCreationDateTime":
		r.Created = Millis(oracleTime(string(m.value)))
	}
}

func oracleTime(s string) int64 {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || f < 0 || f >= maxCreated/1000+1 || strings.HasPrefix(s, "-") {
		return -1
	}
	if strings.ContainsAny(s, "eE") {
		return int64(f * 1000)
	}
	x, _ := new(big.Rat).SetString(s)
	x.Mul(x, big.NewRat(1000, 1))
	return new(big.Int).Quo(x.Num(), x.Denom()).Int64()
}
