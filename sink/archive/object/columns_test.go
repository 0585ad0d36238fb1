package object

import (
	"bytes"
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	pq "github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/transform"
)

// arrowRows reads an object with a library that did not write it: of each row the columns, nulls
// left out.
func arrowRows(t *testing.T, b []byte) (rows []map[string]string, schema *arrow.Schema) {
	t.Helper()
	table, err := pqarrow.ReadTable(t.Context(), bytes.NewReader(b), pq.NewReaderProperties(nil),
		pqarrow.ArrowReadProperties{}, memory.DefaultAllocator)
	if err != nil {
		t.Fatal(err)
	}
	defer table.Release()
	rows = make([]map[string]string, table.NumRows())
	for i := range rows {
		rows[i] = map[string]string{}
	}
	for c := range int(table.NumCols()) {
		n := 0
		for _, chunk := range table.Column(c).Data().Chunks() {
			for i := range chunk.Len() {
				if chunk.IsValid(i) {
					rows[n][table.Schema().Field(c).Name] = arrowText(chunk, i)
				}
				n++
			}
		}
	}
	return rows, table.Schema()
}

func arrowText(a arrow.Array, i int) string {
	switch x := a.(type) {
	case *array.String:
		return x.Value(i)
	case *array.Decimal128:
		return x.Value(i).ToString(x.DataType().(*arrow.Decimal128Type).Scale)
	case *array.Decimal32:
		return x.Value(i).ToString(x.DataType().(*arrow.Decimal32Type).Scale)
	case *array.Decimal64:
		return x.Value(i).ToString(x.DataType().(*arrow.Decimal64Type).Scale)
	}
	return a.ValueStr(i)
}

func TestAnotherLibraryReadsEveryType(t *testing.T) {
	deep := `{"S":"x"}`
	for range 16 {
		deep = `{"M":{"a.b \"q\"":{"L":[` + deep + `]}}}`
	}
	items := []string{
		`{"pk":{"S":""},"n":{"N":"12345678901234567890123456789012345678"},"b":{"B":"AQID"},"bool":{"BOOL":false},` +
			`"nul":{"NULL":true},"ss":{"SS":["é","日本\n"]},"ns":{"NS":["1","-2.5"]},"bs":{"BS":["AA=="]},` +
			`"l":{"L":[{"S":"<&>\u0001"},{"L":[]}]},"m":{"M":{"":{"S":"\\"},"a.b":{"M":{}}}}}`,
		``, `{}`, `{"deep":` + deep + `}`, `{"big":{"S":"` + strings.Repeat("0123456789abcdé", 25<<10) + `"}}`,
	}
	var events []*transform.Event
	for i, item := range items {
		events = append(events, expired(i, item))
	}
	b, _ := written(t, Options{Format: Parquet}, events...)
	rows, schema := arrowRows(t, b)
	for i, e := range events {
		want := map[string]string{
			"id": e.ID(), "deleted_at": "2026-05-04T23:00:0" + fmt.Sprint(i) + "Z", "source": e.Source, "stream": e.Stream,
			"shard": e.Shard, "sequence": string(e.Sequence), "version": fmt.Sprint(e.Version), "keys": e.Subject,
			"expires": e.Expiry,
		}
		if e.Item != nil {
			want["item"] = string(e.Item)
		}
		if diff := cmp.Diff(want, rows[i]); diff != "" {
			t.Errorf("event %d (-want +got):\n%s", i, diff)
		}
	}
	if got := schema.Field(columnDeletedAt).Type.String(); got != "timestamp[ms, tz=UTC]" {
		t.Errorf("deleted_at is of type %s", got)
	}
}

// conversions are values of a column: what readers see ("" for null), and whether the value does
// not fit.
var conversions = []struct {
	kind   Type
	value  string
	want   string
	misfit bool
}{
	{String, `{"S":"é\n"}`, "é\n", false}, {String, `{"S":""}`, "", false}, {String, `{"N":"1e2"}`, "100", false},
	{String, `{"BOOL":true}`, "", true}, {String, `{"B":"AQ=="}`, "", true}, {String, `{"NULL":true}`, "", false},
	{Int64, `{"N":"-9223372036854775808"}`, "-9223372036854775808", false}, {Int64, `{"N":"5.0"}`, "5", false},
	{Int64, `{"N":"9223372036854775808"}`, "", true}, {Int64, `{"N":"1.5"}`, "", true},
	{Int64, `{"N":"12345678901234567890123456789012345678"}`, "", true}, {Int64, `{"S":"5"}`, "", true},
	{Int64, `{"N":"x"}`, "", true}, {Int64, `{"N":"1E2"}`, "100", false}, {Int64, `{"NS":["1"]}`, "", true},
	{Double, `{"N":"1E+125"}`, "1e+125", false}, {Double, `{"N":"-1.5"}`, "-1.5", false}, {Double, `{"S":"1"}`, "", true},
	{Bool, `{"BOOL":true}`, "true", false}, {Bool, `{"BOOL":false}`, "false", false}, {Bool, `{"N":"1"}`, "", true},
	{TimestampSecond, `{"N":"1777939200"}`, "2026-05-05T00:00:00Z", false}, {TimestampSecond, `{"N":"1.5"}`, "", true},
	{TimestampSecond, `{"N":"1777939200000"}`, "", true}, {TimestampSecond, `{"N":"-62135596801"}`, "", true},
	{TimestampSecond, `{"N":"253402300799"}`, "9999-12-31T23:59:59Z", false},
	{TimestampMilli, `{"N":"1777939200123"}`, "2026-05-05T00:00:00.123Z", false},
	{TimestampMilli, `{"N":"253402300800000"}`, "", true},
	{"decimal(38,10)", `{"N":"-1234567890123456789012345678.0123456789"}`,
		"-1234567890123456789012345678.0123456789", false},
	{"decimal(38,10)", `{"N":"12345678901234567890123456789"}`, "", true},
	{"decimal(38,10)", `{"N":"1E-10"}`, "0.0000000001", false}, {"decimal(38,10)", `{"N":"1E-11"}`, "", true},
	{"decimal(38,10)", `{"N":"1E+100"}`, "", true}, {"decimal(38,10)", `{"N":"1E-100"}`, "", true},
	{"decimal(38,38)", `{"N":"0.5"}`, "0.50000000000000000000000000000000000000", false},
	{"decimal(38,38)", `{"N":"1"}`, "", true}, {"decimal(38,0)", `{"N":"99999999999999999999999999999999999999"}`,
		"99999999999999999999999999999999999999", false},
	{"decimal(5,2)", `{"N":"-999.99"}`, "-999.99", false}, {"decimal(5,2)", `{"N":"1000"}`, "", true},
	{"decimal(18,4)", `{"N":"-12345678901234.5678"}`, "-12345678901234.5678", false},
	{"decimal(5,2)", `{"N":"0"}`, "0.00", false}, {"decimal(5,2)", `{"S":"1"}`, "", true},
	{JSON, `{"M":{"a":{"N":"1E+50"},"b":{"L":[{"NULL":true},{"BOOL":true}]},"c\"":{"SS":["x"]},"d":{"B":"AQ=="}}}`,
		`{"a":1E+50,"b":[null,true],"c\"":["x"],"d":"AQ=="}`, false},
	{JSON, `{"S":"x"}`, `"x"`, false}, {JSON, `{"NULL":true}`, "", false},
	{JSON, `{"NS":["1","-0.50"]}`, "[1,-0.5]", false},
}

func TestValuesThatDoNotFitAreNullAndNamed(t *testing.T) {
	for i, c := range conversions {
		o := Options{Format: Parquet, Columns: []Column{
			{Name: "value", Path: []string{"a.b", "", "é \"q\""}, Type: c.kind},
			{Name: "absent", Path: []string{"x"}, Type: c.kind},
			{Name: "below", Path: []string{"s", "x"}, Type: c.kind},
		}}
		if problems := ValidateColumns(o.Columns); len(problems) > 0 {
			t.Fatal(problems)
		}
		b, _ := written(t, o, expired(1, `{"s":{"S":"x"},"a.b":{"M":{"":{"M":{"é \"q\"":`+c.value+`}}}}}`), expired(2, ""))
		rows, _ := arrowRows(t, b)
		want := ""
		if c.misfit {
			want = `["value"]`
		}
		if got := rows[0]; got["value"] != c.want || got["_misfits"] != want || got["absent"]+got["below"] != "" {
			t.Errorf("%s as %s: %q, misfits %s, want %q, %s", c.value, c.kind, got["value"], got["_misfits"], c.want, want)
		}
		if c.misfit != (rows[0]["_misfits"] != "") || rows[1]["_misfits"] != "" {
			t.Errorf("%d: misfits %v", i, rows)
		}
	}
}

func TestMisfitsOfAnEventAreAList(t *testing.T) {
	o := Options{Format: Parquet, Columns: []Column{
		{Name: "b", Path: []string{"s"}, Type: Int64}, {Name: "a", Path: []string{"s"}, Type: Bool},
		{Name: "c", Path: []string{"s"}, Type: String},
	}}
	b, _ := written(t, o, expired(1, `{"s":{"S":"x"}}`), expired(2, `{"s":{"NULL":true}}`), expired(3, `{"s":{"S":"y"}}`))
	rows, schema := arrowRows(t, b)
	var got []string
	for _, r := range rows {
		got = append(got, r["c"]+r["_misfits"])
	}
	if diff := cmp.Diff([]string{`x["a","b"]`, "", `y["a","b"]`}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var names []string
	for _, f := range schema.Fields()[columnsRead:] {
		names = append(names, f.Name)
	}
	if diff := cmp.Diff([]string{"a", "b", "c", "_misfits"}, names); diff != "" {
		t.Errorf("columns (-want +got):\n%s", diff)
	}
}

func TestColumnsThatCannotBeMadeAreAllNamed(t *testing.T) {
	var got []string
	for _, p := range ValidateColumns([]Column{
		{Name: "id", Path: []string{"x"}, Type: String}, {Name: "tr_x", Path: []string{"x"}, Type: String},
		{Name: "Order", Path: []string{"x"}, Type: String}, {Name: "order", Path: []string{"x"}, Type: "decimal(38,10)"},
		{Name: "order", Path: []string{"x"}, Type: String}, {Name: "a.b", Path: []string{"x"}, Type: String},
		{Name: "p", Type: String}, {Name: "q", Path: []string{""}, Type: "text"},
		{Name: "r", Path: []string{"x"}, Type: "decimal(39,1)"},
		{Name: "s", Path: []string{"x"}, Type: "decimal(3,4)"}, {Name: "t", Path: make([]string, 40), Type: String},
		{Name: "_misfits", Path: []string{"x"}, Type: String},
	}) {
		got = append(got, p.Column+" "+p.Field)
		if p.Hint == "" || p.Error() == "" {
			t.Errorf("problem without hint: %+v", p)
		}
	}
	want := "id name, tr_x name, Order name, order name, a.b name, p path," +
		" q path, q type, r type, s type, t path, _misfits name"
	if diff := cmp.Diff(want, strings.Join(got, ", ")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestDecimalsAgreeWithBigInt compares both ways of making a decimal.
func TestDecimalsAgreeWithBigInt(t *testing.T) {
	for _, n := range []string{"0", "1", "-1", "12.5", "-12.5", "-99999999.99", "99999999.99", "-0.01"} {
		d := decimal{10, 2, decimalWidth(10)}
		got := make([]byte, d.width)
		if !d.put(got, n) {
			t.Fatal(n)
		}
		r, _ := new(big.Rat).SetString(n)
		want := new(big.Int).Quo(new(big.Int).Mul(r.Num(), big.NewInt(100)), r.Denom())
		x := new(big.Int).SetBytes(got)
		if got[0]&0x80 != 0 {
			x.Sub(x, new(big.Int).Lsh(big.NewInt(1), uint(8*len(got))))
		}
		if x.Cmp(want) != 0 {
			t.Errorf("%s is written as %s", n, x)
		}
	}
}

func TestRowGroupsAreCutAndReadInOrder(t *testing.T) {
	big := `{"big":{"S":"` + strings.Repeat("0123456789abcdef", 25<<10) + `"}}` // 400 KB
	var events []*transform.Event
	for i := range 45 {
		events = append(events, expired(i, big))
	}
	columns := []Column{{Name: "a", Path: []string{"a"}, Type: Int64}}
	b, _ := written(t, Options{Format: Parquet, Columns: columns}, events...)
	file, _, foot, err := open(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	if n := len(file.RowGroups()); n != 2 || len(foot.groups) != 2 {
		t.Errorf("%d row groups of at most 16 MB hold 18 MB", n)
	}
	for i, g := range file.Metadata().RowGroups {
		if g.TotalByteSize > maxGroup {
			t.Errorf("row group %d has %d bytes", i, g.TotalByteSize)
		}
	}
	for i, e := range read(t, b) {
		if e.ID() != events[i].ID() || !bytes.Equal(e.Item, events[i].Item) {
			t.Fatalf("event %d is %s", i, e.ID())
		}
	}
	rows, _ := arrowRows(t, b)
	if len(rows) != 45 || rows[44]["item"] != big {
		t.Errorf("%d rows", len(rows))
	}
}
