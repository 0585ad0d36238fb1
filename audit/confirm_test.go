package audit_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/audit"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/daemon/daemontest"
	"github.com/tailrace-cdc/replicator/pipeline/status"
	"github.com/tailrace-cdc/replicator/verify/report"
)

// exported returns a world with sixty items that are older than the stream, of which an export is
// in a folder, made with a filter or without. From then on DynamoDB denies that it has an export of
// that name, and lists none, as after 90 days.
func exported(t *testing.T, seed uint64, filter string) *world {
	t.Helper()
	t.Parallel()
	w := &world{World: daemontest.New(t, seed), t: t}
	w.Configure("{source: Orders, target: orders, backfill: none}")
	w.Prepare("Orders")
	if err := w.Buckets.Create("backups"); err != nil {
		t.Fatal(err)
	}
	w.Call("UpdateContinuousBackups",
		`{"TableName":"Orders","PointInTimeRecoverySpecification":{"PointInTimeRecoveryEnabled":true}}`)
	w.Fill("Orders", 60, func(i int) []byte {
		return fmt.Appendf(nil, `{"pk":{"S":"hats"},"sk":{"S":"%02d"},"n":{"N":"%d"},"size":{"S":"large"}}`, i, i)
	})
	w.Clock.Advance(time.Minute) // beside the stream, an export must be younger than that
	reply := w.Call("ExportTableToPointInTime",
		`{"TableArn":"arn:aws:dynamodb:us-east-1:000000000000:table/Orders","S3Bucket":"backups"`+filter+`}`)
	w.DynamoDB.FinishExports()
	var out struct{ ExportDescription struct{ ExportArn string } }
	if err := json.Unmarshal(reply, &out); err != nil {
		t.Fatal(err)
	}
	id := out.ExportDescription.ExportArn[strings.LastIndexByte(out.ExportDescription.ExportArn, '/')+1:]
	w.DynamoDB.Use(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			rw.Header().Set("Content-Type", "application/x-amz-json-1.0")
			switch target := r.Header.Get("X-Amz-Target"); {
			case strings.HasSuffix(target, ".DescribeExport"):
				rw.WriteHeader(http.StatusBadRequest)
				_, _ = rw.Write([]byte(`{"__type":"com.amazonaws.dynamodb.v20120810#ExportNotFoundException","message":"no"}`))
			case strings.HasSuffix(target, ".ListExports"):
				_, _ = rw.Write([]byte(`{"ExportSummaries":[]}`))
			default:
				next.ServeHTTP(rw, r)
			}
		})
	})
	folder := filepath.ToSlash(filepath.Join(w.Buckets.Dir("backups"), "AWSDynamoDB", id))
	w.Configure("{source: Orders, target: orders, backfill: {from: export, url: 'file://" + folder + "'}}")
	w.d = w.Run()
	w.d.Settle()
	return w
}

// inDoubt checks that the table is not ready because nothing shows that its copy is whole, and for
// no other reason.
func (w *world) inDoubt() {
	w.t.Helper()
	if st := w.d.Table("Orders"); len(st.Why) != 1 || st.Why[0].Code != status.WhyUnconfirmed || !st.CopyUnconfirmed {
		w.t.Fatalf("reasons %+v", st.Why)
	}
	v := status.Judge(status.Outlook{Reasons: 1, Tables: []status.Table{w.d.Table("Orders")}})
	if v.Ready || v.State != status.StateDoubt || !strings.Contains(v.Next, "replicator verify --table Orders") {
		w.t.Fatalf("verdict %+v", v)
	}
}

// ready waits until the table has no reason not to be.
func (w *world) ready() {
	w.t.Helper()
	w.Until("the table is ready", func() bool { return len(w.d.Table("Orders").Why) == 0 })
}

// TestCopyThatCouldNotBeAskedAboutIsReadyAfterAVerify: not by a sample, nor by what has changed,
// nor by a restart.
func TestCopyThatCouldNotBeAskedAboutIsReadyAfterAVerify(t *testing.T) {
	w := exported(t, 921, "")
	w.inDoubt()
	w.d.Stop()
	w.d = w.Run()
	w.put(3, "7")
	w.inDoubt()
	if x := w.since(1); x.Verdict == report.Equal {
		w.inDoubt()
	}
	if x := w.full(audit.Options{}); x.Verdict != report.Equal || x.Items != 63 || x.Equal != 63 {
		t.Fatalf("%+v", x)
	}
	w.ready()
	if s := w.Log("Orders").State; len(s.Doubts()) != 0 || len(s.Gaps) != 1 {
		t.Errorf("%+v", s.Gaps)
	}
}

// TestFilteredCopyThatCouldNotBeAskedAboutIsFound: half of the items are missing, or attributes of
// all of them. The comparison finds each, the table stays not ready, and a resync of the whole
// table brings them back.
func TestFilteredCopyThatCouldNotBeAskedAboutIsFound(t *testing.T) {
	for name, c := range map[string]struct {
		seed      uint64
		filter    string
		different int64
	}{
		"half of the items": {922, `,"FilterSpecification":{"FilterExpression":"sk < :half",` +
			`"ExpressionAttributeValues":{":half":{"S":"30"}}}`, 30},
		"keys alone": {923, `,"FilterSpecification":{"ProjectionExpression":"pk, sk"}`, 60},
	} {
		t.Run(name, func(t *testing.T) {
			w := exported(t, c.seed, c.filter)
			w.inDoubt()
			if x := w.full(audit.Options{}); x.Verdict != report.Different || x.Different != c.different {
				t.Fatalf("%+v", x)
			}
			w.inDoubt()
			order := checkpoint.Control{Resync: &checkpoint.ResyncOrder{ID: "resync-1"}}
			if _, err := w.Log("Orders").Append(t.Context(), "resync", order); err != nil {
				t.Fatal(err)
			}
			w.While("the table is resynced", w.ready)
			if x := w.full(audit.Options{}); x.Verdict != report.Equal || x.Items != 60 || x.Equal != 60 {
				t.Fatalf("after the resync: %+v", x)
			}
		})
	}
}
