package source

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/failure"
)

// Every record that is hard to read: the raw path must see in it what the SDK's own decoder sees.
var hardItems = map[string]string{
	"names with NUL, colon, hash, emoji": `{"pk":{"S":"a"},"nul\u0000name":{"S":"x"},"co:lon":{"S":"x"},"ha#sh":{` +
		`"S":"x"},"emoji😀":{"S":"x"},"\ud83d\ude00escaped":{"S":"x"},"quo\"te\\":{"S":"x"}}`,
	"empty, NULL and absent": `{"pk":{"S":"a"},"empty":{"S":""},"null":{"NULL":true},"nobytes":{"B":""}}`,
	"38 digits": `{"pk":{"S":"a"},"n":{"N":"12345678901234567890123456789012345678"},"m":{` +
		`"N":"-0.0000000000000000000000000000000000000000000000000000000000000012345678901234567890123456789012345678"},` +
		`"e":{"N":"9.9999999999999999999999999999999999999E+125"},"s":{"N":"1E-130"}}`,
	"sets": `{"pk":{"S":"a"},"ss":{"SS":["x","y\u0001",""]},"ns":{"NS":["1","2.5"]},"bs":{` +
		`"BS":["AAE=","/w=="]}}`,
	"nesting": `{"pk":{"S":"a"},"m":{"M":{"a":{"L":[{"N":"1"},{"NULL":true},{"M":{"":{` +
		`"S":"deep"}}},{"BOOL":false}]},"é\"":{"S":"\n\t\r\b\f\/"}}},"el":{"L":[]},"em":{"M":{}}}`,
	"braces in strings": `{"pk":{"S":"}]\"{["},"x":{"S":"\\"},"y":{"S":"\\\"}"}}`,
	"spaces":            ` { "pk" : { "S" : "a" } , "l" : { "L" : [ { "N" : "1" } , { "N" : "2" } ] } } `,
	"a binary key's look-alike": `{"pk":{"S":"{\"B\":\"AA==\"}"},"b":{"B":"` +
		base64.StdEncoding.EncodeToString([]byte{0, 1, 255}) + `"}}`,
}

func hardPage() string {
	var recs []string
	i := 0
	for _, image := range hardItems {
		i++
		key := image[strings.Index(image, `"pk"`):]
		key = "{" + key[:strings.Index(key, "}")+1] + "}"
		if strings.Contains(image, `}]\"{[`) {
			key = `{"pk":{"S":"}]\"{["}}`
		} else if strings.Contains(image, "look-alike") || strings.Contains(image, `\"B\"`) {
			key = `{"pk":{"S":"{\"B\":\"AA==\"}"}}`
		}
		recs = append(recs, fmt.Sprintf(`{"eventID":"e%d","eventName":"INSERT","eventVersion":"1.1","dynamodb":{`+
			`"ApproximateCreationDateTime":1700000000.25,"Keys":%s,"NewImage":%s,"SequenceNumber":%q,`+
			`"SizeBytes":12}}`, i, key, image, seq(3*i)))
		recs = append(recs, fmt.Sprintf(`{"userIdentity":{"PrincipalId":"dynamodb.amazonaws.com","Type":"Service"},`+
			`"eventID":"r%d","eventName":"REMOVE","dynamodb":{"SequenceNumber":%q,"OldImage":%s,"Keys":%s,`+
			`"ApproximateCreationDateTime":1.7E9},"unknown":[{"a":"]}"}]}`, i, seq(3*i+1), image, key))
	}
	return `{"NextShardIterator":"n\u0065xt","Records":[` + strings.Join(recs, ",") + `],"Other":null}`
}

func TestRawPageEqualsTheSDKsDecoding(t *testing.T) {
	w := newWire()
	w.shard("a", "", 0)
	page := hardPage()
	w.script = func(c wireCall) *wireReply {
		if c.op == "GetRecords" {
			return &wireReply{body: page}
		}
		return nil
	}
	s := open(t, w)
	r := s.NewReader(start("a", change.Position{}))
	defer r.Close()
	p := next(t, r)
	defer p.Release()
	want, err := s.streams.GetRecords(t.Context(), &dynamodbstreams.GetRecordsInput{ShardIterator: aws.String("a|0|0")})
	if err != nil {
		t.Fatal(err)
	}
	compareRecords(t, want.Records, p.Records)
	if r.iterator != *want.NextShardIterator {
		t.Errorf("iterator %q, SDK %q", r.iterator, *want.NextShardIterator)
	}
}

// compareRecords compares field by field, value by value.
func compareRecords(t *testing.T, want []types.Record, got []change.Record) {
	t.Helper()
	if len(got) != len(want) || len(got) == 0 {
		t.Fatalf("%d records, the SDK sees %d", len(got), len(want))
	}
	type fields struct {
		Seq, ID, Op    string
		Created, Size  int64
		TTL            bool
		Keys, New, Old map[string]any
	}
	for i, r := range got {
		w := want[i]
		mine := fields{string(r.SequenceNumber), string(r.EventID), r.Op.String(), int64(r.Created), r.Size, r.TTL,
			decoded(t, r.Keys), decoded(t, r.New), decoded(t, r.Old)}
		sdk := fields{
			*w.Dynamodb.SequenceNumber, *w.EventID, string(w.EventName), w.Dynamodb.ApproximateCreationDateTime.UnixMilli(),
			aws.ToInt64(w.Dynamodb.SizeBytes),
			byTTL(w), plainMap(w.Dynamodb.Keys), plainMap(w.Dynamodb.NewImage), plainMap(w.Dynamodb.OldImage),
		}
		if diff := cmp.Diff(sdk, mine); diff != "" {
			t.Errorf("record %d: %s", i, diff)
		}
	}
}

// byTTL is what a program with the SDK asks: did the service itself delete the item?
func byTTL(r types.Record) bool {
	return r.UserIdentity != nil && aws.ToString(r.UserIdentity.Type) == "Service" &&
		aws.ToString(r.UserIdentity.PrincipalId) == "dynamodb.amazonaws.com"
}

func decoded(t *testing.T, raw []byte) map[string]any {
	t.Helper()
	var d change.Decoder
	img, err := d.Image(raw)
	if err != nil {
		t.Fatal(err)
	}
	if img == nil {
		return nil
	}
	return plainImage(img)
}

func plainImage(img change.Image) map[string]any {
	m := map[string]any{}
	for _, a := range img {
		m[strings.Clone(a.Name)] = plainValue(a.Value)
	}
	return m
}

// plainValue spells a value as "kind:text", lists and maps recursively, so that two decoders can be
// compared.
func plainValue(v change.Value) any {
	switch v.Kind {
	case change.KindNull:
		return "NULL"
	case change.KindBool:
		return v.Bool
	case change.KindMap:
		return plainImage(v.M)
	case change.KindString, change.KindNumber, change.KindBinary:
		return v.Kind.String() + ":" + v.S
	}
	list := []any{v.Kind.String()}
	for _, e := range v.L {
		if v.Kind == change.KindList {
			list = append(list, plainValue(e))
		} else {
			list = append(list, e.S)
		}
	}
	return list
}

func plainMap(m map[string]types.AttributeValue) map[string]any {
	if m == nil {
		return nil
	}
	out := map[string]any{}
	for name, v := range m {
		out[name] = plainSDK(v)
	}
	return out
}

func plainSDK(v types.AttributeValue) any {
	texts := func(kind string, list []string) any {
		out := []any{kind}
		for _, s := range list {
			out = append(out, s)
		}
		return out
	}
	switch v := v.(type) {
	case *types.AttributeValueMemberNULL:
		return "NULL"
	case *types.AttributeValueMemberBOOL:
		return v.Value
	case *types.AttributeValueMemberS:
		return "S:" + v.Value
	case *types.AttributeValueMemberN:
		return "N:" + v.Value
	case *types.AttributeValueMemberB:
		return "B:" + base64.StdEncoding.EncodeToString(v.Value)
	case *types.AttributeValueMemberSS:
		return texts("SS", v.Value)
	case *types.AttributeValueMemberNS:
		return texts("NS", v.Value)
	case *types.AttributeValueMemberBS:
		out := []any{"BS"}
		for _, b := range v.Value {
			out = append(out, base64.StdEncoding.EncodeToString(b))
		}
		return out
	case *types.AttributeValueMemberL:
		out := []any{"L"}
		for _, e := range v.Value {
			out = append(out, plainSDK(e))
		}
		return out
	case *types.AttributeValueMemberM:
		return plainMap(v.Value)
	}
	return fmt.Sprintf("%T", v)
}

// 400 KB in both images is more than most pages; it must come through whole.
func TestLargestItemWithBothImages(t *testing.T) {
	w := newWire()
	sh := w.shard("a", "", 0)
	image := func(c string) string {
		return `{"pk":{"S":"big"},"v":{"S":"` + strings.Repeat(c, 400<<10) + `"},"e":{"S":"` + strings.Repeat(`\"`, 1000) +
			`"}}`
	}
	sh.records = []string{fmt.Sprintf(`{"eventID":"1","eventName":"MODIFY","dynamodb":{"ApproximateCreationDateTime":%d,`+
		`"Keys":{"pk":{"S":"big"}},"NewImage":%s,"OldImage":%s,"SequenceNumber":"%s"}}`,
		time.Now().Unix(), image("n"), image("o"), seq(1))}
	r := open(t, w).NewReader(start("a", change.Position{}))
	defer r.Close()
	p := next(t, r)
	defer p.Release()
	got := p.Records[0]
	if string(got.New) != image("n") || string(got.Old) != image("o") {
		t.Fatalf("%d and %d bytes", len(got.New), len(got.Old))
	}
	if decoded(t, got.New)["v"] != "S:"+strings.Repeat("n", 400<<10) {
		t.Fatal("image differs")
	}
}

// The same item must have the same hash however its key is written; other items another.
func TestKeyHashIsOfTheItemNotOfItsSpelling(t *testing.T) {
	w := newWire()
	sh := w.shard("a", "", 0)
	for i, key := range []string{`{"pk":{"S":"x"},"n":{"N":"1"}}`, `{ "n":{"N":"1.0"},"pk" : {"S":"\u0078"}}`,
		`{"pk":{"S":"x"},"n":{"N":"2"}}`, `{"pk":{"S":""},"n":{"N":"1"}}`} {
		sh.records = append(sh.records, record(seq(i), 1_700_000_000, key))
	}
	st := start("a", change.Position{})
	st.Schema.Sort = &change.KeyAttr{Name: "n", Type: 'N'}
	r := open(t, w).NewReader(st)
	defer r.Close()
	p := next(t, r)
	defer p.Release()
	h := func(i int) uint64 { return p.Records[i].KeyHash }
	if h(0) != h(1) || h(0) == h(2) || h(0) == h(3) || h(0) == 0 {
		t.Fatal(h(0), h(1), h(2), h(3))
	}
}

// A record that breaks a promise halts the reader: it must be neither dropped nor given a wrong
// version.
func TestRecordsThatBreakPromises(t *testing.T) {
	good := `{"pk":{"S":"x"}}`
	for name, records := range map[string][]string{
		"no creation time": {record(seq(1), 0, good)},
		"not in order":     {record(seq(2), 1_700_000_000, good), record(seq(1), 1_700_000_000, good)},
		"twice":            {record(seq(2), 1_700_000_000, good), record(seq(2), 1_700_000_000, good)},
		"key missing":      {record(seq(1), 1_700_000_000, `{"other":{"S":"x"}}`)},
		"key of a type":    {record(seq(1), 1_700_000_000, `{"pk":{"N":"1"}}`)},
	} {
		w := newWire()
		w.shard("a", "", 0).records = records
		s := open(t, w)
		r := s.NewReader(start("a", change.Position{}))
		p, err := r.Next(t.Context())
		if Classify(err) != failure.Fatal || Hint(err) == "" || p != nil {
			t.Errorf("%s: %v: %v", name, Classify(err), err)
		}
		if s.budget.InUse() != 0 {
			t.Errorf("%s: %d bytes in use", name, s.budget.InUse())
		}
		r.Close()
	}
}
