package sandbox_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/md5"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/sandbox"
	"github.com/tailrace-cdc/replicator/sandbox/clock"
)

// exportRig is a rig with a virtual clock, a table Orders with point-in-time recovery, and a
// bucket.
type exportRig struct {
	*rig
	c *clock.Clock
}

func newExportRig(t *testing.T, o sandbox.Options) *exportRig {
	t.Helper()
	c := clock.NewVirtual(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))
	o.Clock, o.NoBigtable, o.NoNATS, o.Sweep = c, true, true, -1
	r := &exportRig{newRig(t, o), c}
	r.createTable("Orders")
	r.recovery("Orders", true)
	r.must(r.Buckets.Create("backups"))
	return r
}

func (r *exportRig) recovery(table string, on bool) {
	r.t.Helper()
	_, err := r.db.UpdateContinuousBackups(r.t.Context(), &dynamodb.UpdateContinuousBackupsInput{TableName: &table,
		PointInTimeRecoverySpecification: &types.PointInTimeRecoverySpecification{PointInTimeRecoveryEnabled: &on}})
	r.must(err)
}

// request is a request for a full export of Orders.
func (r *exportRig) request() *dynamodb.ExportTableToPointInTimeInput {
	return &dynamodb.ExportTableToPointInTimeInput{
		TableArn: aws.String("arn:aws:dynamodb:us-east-1:000000000000:table/Orders"), S3Bucket: aws.String("backups"),
	}
}

// export makes an export and waits for its end.
func (r *exportRig) export(in *dynamodb.ExportTableToPointInTimeInput) *types.ExportDescription {
	r.t.Helper()
	out, err := r.db.ExportTableToPointInTime(r.t.Context(), in)
	r.must(err)
	return r.finished(out.ExportDescription)
}

// finished waits for the end of an export.
func (r *exportRig) finished(e *types.ExportDescription) *types.ExportDescription {
	r.t.Helper()
	sandbox.Watch{}.Until(r.t, "the export has ended", func() bool {
		out, err := r.db.DescribeExport(r.t.Context(), &dynamodb.DescribeExportInput{ExportArn: e.ExportArn})
		r.must(err)
		e = out.ExportDescription
		return e.ExportStatus != types.ExportStatusInProgress
	})
	return e
}

// lines returns the lines of an export's data files, which it reads through S3 and checks against
// the manifests.
func (r *exportRig) lines(e *types.ExportDescription) (all []string) {
	r.t.Helper()
	if e.ExportStatus != types.ExportStatusCompleted {
		r.t.Fatalf("export %s: %s %s", e.ExportStatus, aws.ToString(e.FailureCode), aws.ToString(e.FailureMessage))
	}
	summary := r.checked(*e.S3Bucket, *e.ExportManifest)
	var head struct {
		ExportArn, TableID, ManifestFilesS3Key string
		ItemCount                              int64
	}
	r.must(json.Unmarshal(summary, &head))
	if head.ExportArn != *e.ExportArn || head.TableID != *e.TableId || head.ItemCount != *e.ItemCount {
		r.t.Errorf("summary %s of %+v", summary, e)
	}
	for in := bufio.NewScanner(bytes.NewReader(r.checked(*e.S3Bucket, head.ManifestFilesS3Key))); in.Scan(); {
		var f struct {
			MD5Checksum, ETag, DataFileS3Key string
			ItemCount                        int
		}
		r.must(json.Unmarshal(in.Bytes(), &f))
		body, tag := r.object(*e.S3Bucket, f.DataFileS3Key)
		if sum := md5.Sum(body); base64.StdEncoding.EncodeToString(sum[:]) != f.MD5Checksum || tag != `"`+f.ETag+`"` {
			r.t.Errorf("object %s: ETag %s, manifest %+v", f.DataFileS3Key, tag, f)
		}
		z, err := gzip.NewReader(bytes.NewReader(body))
		r.must(err)
		text, err := io.ReadAll(z)
		r.must(err)
		if n := strings.Count(string(text), "\n"); n != f.ItemCount {
			r.t.Errorf("file %s has %d lines, manifest %d", f.DataFileS3Key, n, f.ItemCount)
		}
		all = append(all, strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")[:f.ItemCount]...)
	}
	slices.Sort(all)
	return all
}

// checked returns a manifest whose checksum is right.
func (r *exportRig) checked(bucket, key string) []byte {
	r.t.Helper()
	body, _ := r.object(bucket, key)
	sum := md5.Sum(body)
	if want, _ := r.object(bucket, strings.TrimSuffix(key, ".json")+".md5"); string(want) !=
		base64.StdEncoding.EncodeToString(sum[:]) {
		r.t.Errorf("checksum of %s: %s", key, want)
	}
	return body
}

// object reads an object over HTTP.
func (r *exportRig) object(bucket, key string) (body []byte, tag string) {
	r.t.Helper()
	res, err := http.Get(r.S3.URL() + "/" + bucket + "/" + key)
	r.must(err)
	defer func() { _ = res.Body.Close() }()
	body, err = io.ReadAll(res.Body)
	r.must(err)
	if res.StatusCode != http.StatusOK {
		r.t.Fatalf("get %s: %s", key, res.Status)
	}
	return body, res.Header.Get("ETag")
}

func item(pk string, n int) string { return fmt.Sprintf(`{"n":{"N":"%d"},"pk":{"S":"%s"}}`, n, pk) }

// TestFullExportIsTheTableAtItsTime: later writes and deletes do not show, also when it is asked
// for afterwards.
func TestFullExportIsTheTableAtItsTime(t *testing.T) {
	r := newExportRig(t, sandbox.Options{})
	for i := range 9 {
		r.must(r.put("Orders", fmt.Sprint("p", i), i))
	}
	at := r.c.Now()
	r.c.Advance(time.Hour)
	r.must(r.put("Orders", "p1", 100))
	r.must(r.put("Orders", "new", 1))
	r.must(r.DynamoDB.Delete("Orders", []byte(`{"pk":{"S":"p2"}}`)))
	var before, now []string
	for i := range 9 {
		before = append(before, `{"Item":`+item(fmt.Sprint("p", i), i)+`}`)
	}
	for _, it := range r.itemsOf("Orders") {
		now = append(now, `{"Item":`+it+`}`)
	}
	slices.Sort(before)
	slices.Sort(now)
	in := r.request()
	in.ExportTime, in.S3Prefix = &at, aws.String("old/2026")
	past := r.export(in)
	if diff := cmp.Diff(before, r.lines(past)); diff != "" {
		t.Errorf("export of the past (-want +got):\n%s", diff)
	}
	if !strings.HasPrefix(*past.ExportManifest, "old/2026/AWSDynamoDB/") || *past.ItemCount != 9 ||
		*past.BilledSizeBytes == 0 {
		t.Errorf("description %+v", past)
	}
	if diff := cmp.Diff(now, r.lines(r.export(r.request()))); diff != "" {
		t.Errorf("export of the present (-want +got):\n%s", diff)
	}
}

// itemsOf returns a table's items.
func (r *rig) itemsOf(table string) (all []string) {
	items, err := r.DynamoDB.Items(table)
	r.must(err)
	for _, it := range items {
		all = append(all, string(it))
	}
	return all
}

// TestIncrementalExportHasNetChanges: each item once, with its first old and its last new image of
// the period.
func TestIncrementalExportHasNetChanges(t *testing.T) {
	r := newExportRig(t, sandbox.Options{})
	for _, pk := range []string{"kept", "changed", "gone", "early"} {
		r.must(r.put("Orders", pk, 1))
	}
	r.c.Advance(time.Minute)
	from := r.c.Now()
	r.must(r.put("Orders", "changed", 2)) // at the start: included
	r.c.Advance(time.Minute)
	at := r.c.Now().UnixMicro()
	r.must(r.put("Orders", "changed", 3))
	r.must(r.put("Orders", "new", 4))
	r.must(r.put("Orders", "short", 5))
	r.must(r.DynamoDB.Delete("Orders", []byte(`{"pk":{"S":"short"}}`)))
	r.must(r.DynamoDB.Delete("Orders", []byte(`{"pk":{"S":"gone"}}`)))
	r.c.Advance(20 * time.Minute)
	to := r.c.Now()
	r.must(r.put("Orders", "changed", 9)) // at the end: not included
	line := func(pk, old, now string) string {
		s := fmt.Sprintf(`{"Metadata":{"WriteTimestampMicros":{"N":"%d"}},"Keys":{"pk":{"S":"%s"}}`, at, pk)
		if old != "" {
			s += `,"OldImage":` + old
		}
		if now != "" {
			s += `,"NewImage":` + now
		}
		return s + "}"
	}
	in := r.request()
	in.ExportType = types.ExportTypeIncrementalExport
	in.IncrementalExportSpecification = &types.IncrementalExportSpecification{ExportFromTime: &from, ExportToTime: &to}
	want := []string{line("changed", item("changed", 1), item("changed", 3)), line("gone", item("gone", 1), ""),
		line("new", "", item("new", 4))}
	if diff := cmp.Diff(want, r.lines(r.export(in))); diff != "" {
		t.Errorf("both images (-want +got):\n%s", diff)
	}
	in.ClientToken = nil // the SDK has filled it in
	in.IncrementalExportSpecification.ExportViewType = types.ExportViewTypeNewImage
	e := r.export(in)
	want = []string{line("changed", "", item("changed", 3)), line("gone", "", ""), line("new", "", item("new", 4))}
	if diff := cmp.Diff(want, r.lines(e)); diff != "" {
		t.Errorf("new images (-want +got):\n%s", diff)
	}
	for _, want := range []string{`"exportType":"INCREMENTAL_EXPORT"`, `"outputView":"NEW_IMAGE"`,
		`"exportFromTime":"2026-11-21T12:01:00.000Z"`, `"version":"2023-08-01"`} {
		if body, _ := r.object("backups", *e.ExportManifest); !strings.Contains(string(body), want) {
			t.Errorf("summary %s lacks %s", body, want)
		}
	}
}

// TestFilteredExportHasWhatItsExpressionsTake: an incremental one decides by the newest image, of a
// deleted item by the old one. The description shows the filter; the manifest says nothing.
func TestFilteredExportHasWhatItsExpressionsTake(t *testing.T) {
	r := newExportRig(t, sandbox.Options{})
	r.do("exports", `{"takes":"5m"}`)
	for pk, n := range map[string]int{"a": 1, "b": 2, "c": 3, "gone": 3, "sunk": 3} {
		r.must(r.put("Orders", pk, n))
	}
	r.c.Advance(time.Minute)
	from := r.c.Now()
	r.must(r.put("Orders", "c", 4))
	r.must(r.put("Orders", "sunk", 1))
	r.must(r.DynamoDB.Delete("Orders", []byte(`{"pk":{"S":"gone"}}`)))
	r.c.Advance(20 * time.Minute)
	number := map[string]types.AttributeValue{":n": &types.AttributeValueMemberN{Value: "2"}}
	at := fmt.Sprintf(`{"Metadata":{"WriteTimestampMicros":{"N":"%d"}},"Keys":`, from.UnixMicro())
	for _, c := range []struct {
		of          types.FilterSpecification
		incremental bool
		want        []string
	}{
		{types.FilterSpecification{FilterExpression: aws.String("n >= :n"), ExpressionAttributeValues: number}, false,
			[]string{`{"Item":` + item("b", 2) + `}`, `{"Item":` + item("c", 4) + `}`}},
		{types.FilterSpecification{ProjectionExpression: aws.String("pk")}, false,
			[]string{`{"Item":{"pk":{"S":"a"}}}`, `{"Item":{"pk":{"S":"b"}}}`, `{"Item":{"pk":{"S":"c"}}}`,
				`{"Item":{"pk":{"S":"sunk"}}}`}},
		{types.FilterSpecification{KeyConditionExpression: aws.String("#k = :k"),
			ExpressionAttributeNames:  map[string]string{"#k": "pk"},
			ExpressionAttributeValues: map[string]types.AttributeValue{":k": &types.AttributeValueMemberS{Value: "a"}}}, false,
			[]string{`{"Item":` + item("a", 1) + `}`}},
		{types.FilterSpecification{FilterExpression: aws.String("n >= :n"), ExpressionAttributeValues: number}, true,
			[]string{at + `{"pk":{"S":"c"}},"OldImage":` + item("c", 3) + `,"NewImage":` + item("c", 4) + `}`,
				at + `{"pk":{"S":"gone"}},"OldImage":` + item("gone", 3) + `}`}},
	} {
		in := r.request()
		if in.FilterSpecification = &c.of; c.incremental {
			in.ExportType = types.ExportTypeIncrementalExport
			in.IncrementalExportSpecification = &types.IncrementalExportSpecification{ExportFromTime: &from}
		}
		out, err := r.db.ExportTableToPointInTime(t.Context(), in)
		r.must(err)
		r.must(r.put("Orders", "noise", 0)) // a request that may use the buffers of the first
		r.must(r.DynamoDB.Delete("Orders", []byte(`{"pk":{"S":"noise"}}`)))
		r.c.Advance(5 * time.Minute)
		e := r.finished(out.ExportDescription)
		if diff := cmp.Diff(c.want, r.lines(e)); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", c.of, diff)
		}
		if f := e.FilterSpecification; f == nil || aws.ToString(f.FilterExpression) != aws.ToString(c.of.FilterExpression) ||
			!maps.Equal(f.ExpressionAttributeNames, c.of.ExpressionAttributeNames) ||
			len(f.ExpressionAttributeValues) != len(c.of.ExpressionAttributeValues) {
			t.Errorf("described %+v, want %+v", f, c.of)
		}
		if body, _ := r.object("backups", *e.ExportManifest); strings.Contains(string(body), "xpression") {
			t.Errorf("the manifest tells: %s", body)
		}
	}
	in := r.request()
	in.FilterSpecification = &types.FilterSpecification{FilterExpression: aws.String("n >")}
	if _, err := r.db.ExportTableToPointInTime(t.Context(), in); err == nil ||
		!strings.Contains(err.Error(), "Invalid FilterExpression") {
		t.Errorf("broken expression: %v", err)
	}
}

func TestExportsAreRefusedAsByTheService(t *testing.T) {
	r := newExportRig(t, sandbox.Options{})
	begun := r.c.Now()
	r.c.Advance(48 * time.Hour)
	now := r.c.Now()
	incremental := func(from, to time.Time) func(*dynamodb.ExportTableToPointInTimeInput) {
		return func(in *dynamodb.ExportTableToPointInTimeInput) {
			in.ExportType = types.ExportTypeIncrementalExport
			in.IncrementalExportSpecification = &types.IncrementalExportSpecification{ExportFromTime: &from, ExportToTime: &to}
		}
	}
	r.createTable("Plain")
	for name, c := range map[string]struct {
		change func(*dynamodb.ExportTableToPointInTimeInput)
		want   string
	}{
		"no recovery": {func(in *dynamodb.ExportTableToPointInTimeInput) {
			in.TableArn = aws.String(strings.Replace(*in.TableArn, "Orders", "Plain", 1))
		}, "PointInTimeRecoveryUnavailableException: Point in time recovery is not enabled for table 'Plain'"},
		"no table": {func(in *dynamodb.ExportTableToPointInTimeInput) {
			in.TableArn = aws.String(strings.Replace(*in.TableArn, "Orders", "Nowhere", 1))
		}, "TableNotFoundException"},
		"before recovery": {func(in *dynamodb.ExportTableToPointInTimeInput) {
			in.ExportTime = aws.Time(begun.Add(-time.Minute))
		}, "InvalidExportTimeException"},
		"in the future": {func(in *dynamodb.ExportTableToPointInTimeInput) {
			in.ExportTime = aws.Time(now.Add(time.Minute))
		}, "InvalidExportTimeException"},
		"period too short": {incremental(now.Add(-14*time.Minute), now), "less than 15 minutes"},
		"period too long":  {incremental(now.Add(-25*time.Hour), now), "greater than 24 hours"},
		"period too early": {incremental(begun.Add(-time.Hour), begun), "InvalidExportTimeException"},
		"period too late":  {incremental(now.Add(-time.Hour), now.Add(time.Hour)), "InvalidExportTimeException"},
		"incremental alone": {func(in *dynamodb.ExportTableToPointInTimeInput) {
			in.ExportType = types.ExportTypeIncrementalExport
		}, "ValidationException"},
	} {
		in := r.request()
		c.change(in)
		if _, err := r.db.ExportTableToPointInTime(t.Context(), in); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
	in := r.request()
	in.S3Bucket = aws.String("nowhere")
	if e := r.export(in); e.ExportStatus != types.ExportStatusFailed || *e.FailureCode != "S3NoSuchBucket" {
		t.Errorf("missing bucket: %+v", e)
	}
	unknown := strings.TrimSuffix(*r.request().TableArn, "Orders") + "Nowhere/export/01234567890123-0123abcd"
	_, err := r.db.DescribeExport(t.Context(), &dynamodb.DescribeExportInput{ExportArn: &unknown})
	if missing := (*types.ExportNotFoundException)(nil); !errors.As(err, &missing) {
		t.Errorf("unknown export: %v", err)
	}
}

// TestExportTakesItsTimeAndIsNotRepeated: it is as of its request, whatever is written while it is
// in progress.
func TestExportTakesItsTimeAndIsNotRepeated(t *testing.T) {
	r := newExportRig(t, sandbox.Options{})
	r.do("exports", `{"takes":"5m","files":7}`)
	r.must(r.put("Orders", "a", 1))
	in := r.request()
	in.ClientToken = aws.String("once")
	out, err := r.db.ExportTableToPointInTime(t.Context(), in)
	r.must(err)
	r.must(r.put("Orders", "b", 1))
	again, err := r.db.ExportTableToPointInTime(t.Context(), in)
	r.must(err)
	if *again.ExportDescription.ExportArn != *out.ExportDescription.ExportArn ||
		again.ExportDescription.ExportStatus != types.ExportStatusInProgress {
		t.Errorf("repeated: %+v", again.ExportDescription)
	}
	in.S3Prefix = aws.String("elsewhere")
	if _, err := r.db.ExportTableToPointInTime(t.Context(), in); err == nil ||
		!strings.Contains(err.Error(), "ExportConflictException") {
		t.Errorf("the token with another prefix: %v", err)
	}
	files, err := filepath.Glob(filepath.Join(r.Buckets.Dir("backups"), "AWSDynamoDB", "*", "*"))
	if err != nil || len(files) != 1 || filepath.Base(files[0]) != "_started" {
		t.Errorf("files in progress %v, %v", files, err)
	}
	r.c.Advance(5 * time.Minute)
	e := r.finished(out.ExportDescription)
	if diff := cmp.Diff([]string{`{"Item":` + item("a", 1) + `}`}, r.lines(e)); diff != "" {
		t.Errorf("export (-want +got):\n%s", diff)
	}
	if e.EndTime.Sub(*e.StartTime) != 5*time.Minute {
		t.Errorf("from %v to %v", e.StartTime, e.EndTime)
	}
	list, err := r.db.ListExports(t.Context(), &dynamodb.ListExportsInput{TableArn: in.TableArn})
	r.must(err)
	if len(list.ExportSummaries) != 1 || list.ExportSummaries[0].ExportStatus != types.ExportStatusCompleted {
		t.Errorf("list %+v", list.ExportSummaries)
	}
	if n := r.dataFiles("*.json.gz"); n != 7 {
		t.Errorf("%d data files", n)
	}
}

// dataFiles counts the data files of full exports in the bucket.
func (r *exportRig) dataFiles(pattern string) int {
	r.t.Helper()
	files, err := filepath.Glob(filepath.Join(r.Buckets.Dir("backups"), "AWSDynamoDB", "*", "data", pattern))
	r.must(err)
	return len(files)
}

// TestExportsOfATableOfTheSameName: each export names the table that it is of by its id.
func TestExportsOfATableOfTheSameName(t *testing.T) {
	r := newExportRig(t, sandbox.Options{})
	r.must(r.put("Orders", "first", 1))
	first := r.export(r.request())
	_, err := r.db.DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: aws.String("Orders")})
	r.must(err)
	r.createTable("Orders")
	if _, err := r.db.ExportTableToPointInTime(t.Context(), r.request()); err == nil ||
		!strings.Contains(err.Error(), "PointInTimeRecoveryUnavailable") {
		t.Errorf("the new table has inherited recovery: %v", err)
	}
	r.recovery("Orders", true)
	r.must(r.put("Orders", "second", 1))
	second := r.export(r.request())
	if *first.TableId == *second.TableId || len(r.lines(second)) != 1 || !strings.Contains(r.lines(second)[0], "second") {
		t.Errorf("table %s, then %s with %v", *first.TableId, *second.TableId, r.lines(second))
	}
	list, err := r.db.ListExports(t.Context(), &dynamodb.ListExportsInput{MaxResults: aws.Int32(1)})
	r.must(err)
	next, err := r.db.ListExports(t.Context(), &dynamodb.ListExportsInput{NextToken: list.NextToken})
	r.must(err)
	if len(list.ExportSummaries) != 1 || len(next.ExportSummaries) != 1 || next.NextToken != nil ||
		*list.ExportSummaries[0].ExportArn != *second.ExportArn || *next.ExportSummaries[0].ExportArn != *first.ExportArn {
		t.Errorf("pages %+v, %+v", list, next)
	}
	own, err := r.db.ListExports(t.Context(), &dynamodb.ListExportsInput{TableArn: second.TableArn})
	r.must(err)
	if len(own.ExportSummaries) != 1 || *own.ExportSummaries[0].ExportArn != *second.ExportArn {
		t.Errorf("the new table's exports: %+v", own)
	}
}

func TestIonExportLooksLikeOne(t *testing.T) {
	r := newExportRig(t, sandbox.Options{})
	r.must(r.put("Orders", "a", 1))
	in := r.request()
	in.ExportFormat = types.ExportFormatIon
	e := r.export(in)
	if got := r.lines(e); len(got) != 1 || !strings.HasPrefix(got[0], "$ion_1_0 {") {
		t.Errorf("lines %v", got)
	}
	if n := r.dataFiles("*.ion.gz"); n != 4 {
		t.Errorf("%d data files", n)
	}
}

// TestExportsAndRecoverySurviveARestart: the past does not, so recovery begins again.
func TestExportsAndRecoverySurviveARestart(t *testing.T) {
	dir := t.TempDir()
	first, err := sandbox.Start(sandbox.Options{Dir: dir, NoBigtable: true, NoNATS: true})
	if err != nil {
		t.Fatal(err)
	}
	call := func(s *sandbox.Sandbox, op, body string) string {
		t.Helper()
		reply, err := s.Call(t.Context(), op, body)
		if err != nil {
			t.Fatal(err)
		}
		return string(reply)
	}
	call(first, "CreateTable", `{"TableName":"Orders","BillingMode":"PAY_PER_REQUEST",
		"AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"}],
		"KeySchema":[{"AttributeName":"pk","KeyType":"HASH"}]}`)
	call(first, "UpdateContinuousBackups",
		`{"TableName":"Orders","PointInTimeRecoverySpecification":{"PointInTimeRecoveryEnabled":true}}`)
	if err := os.Mkdir(filepath.Join(dir, "exports", "backups"), 0o755); err != nil {
		t.Fatal(err)
	}
	const request = `{"TableArn":"arn:aws:dynamodb:us-east-1:000000000000:table/Orders","S3Bucket":"backups"}`
	call(first, "ExportTableToPointInTime", request)
	sandbox.Watch{}.Until(t, "the export is complete", func() bool {
		return strings.Contains(call(first, "ListExports", "{}"), "COMPLETED")
	})
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	again := sandbox.Test(t, sandbox.Options{Dir: dir, NoBigtable: true, NoNATS: true})
	if list := call(again, "ListExports", "{}"); !strings.Contains(list, "COMPLETED") {
		t.Errorf("exports %s", list)
	}
	if got := call(again, "DescribeContinuousBackups", `{"TableName":"Orders"}`); !strings.Contains(got,
		`"PointInTimeRecoveryStatus":"ENABLED"`) {
		t.Errorf("recovery %s", got)
	}
	call(again, "ExportTableToPointInTime", request)
	manifests, err := filepath.Glob(filepath.Join(dir, "exports", "backups", "AWSDynamoDB", "*", "manifest-summary.json"))
	if err != nil || len(manifests) == 0 {
		t.Errorf("manifests %v, %v", manifests, err)
	}
}
