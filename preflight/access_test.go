package preflight

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tailrace-cdc/replicator/catalog"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/problem"
	"github.com/tailrace-cdc/replicator/sandbox/fault"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
)

// TestCopiesThatCannotBeRead: one cause at a time; what is found besides what is always found.
func TestCopiesThatCannotBeRead(t *testing.T) {
	const on = `{"TableName":"Orders","PointInTimeRecoverySpecification":{"PointInTimeRecoveryEnabled":true}}`
	for name, c := range map[string]struct {
		arrange func(t *testing.T, s *stage)
		want    []string
		says    string // part of what is found, or of its hint
	}{
		"BatchGetItem denied": {func(t *testing.T, s *stage) {
			s.inject(t, fault.Rule{Effect: fault.Error, Operation: "BatchGetItem", Code: "AccessDeniedException"})
		}, []string{"items!"}, "dynamodb:BatchGetItem"},
		"no point-in-time recovery": {func(_ *testing.T, s *stage) {
			s.cfg.Tables[0].Backfill = config.Backfill{From: "export", Bucket: "backups"}
		}, []string{"no_recovery!"}, "aws dynamodb update-continuous-backups --table-name Orders"},
		"no such bucket": {func(_ *testing.T, s *stage) {
			s.Call("UpdateContinuousBackups", on)
			s.cfg.Tables[0].Backfill = config.Backfill{From: "export", Bucket: "nowhere"}
		}, []string{"export!"}, "s3://nowhere/"},
		"an export that can be asked for": {func(_ *testing.T, s *stage) {
			s.Call("UpdateContinuousBackups", on)
			s.cfg.Tables[0].Backfill = config.Backfill{From: "export", Bucket: "backups", Prefix: "orders"}
		}, nil, ""},
		"recovery may not be asked about": {func(t *testing.T, s *stage) {
			s.inject(t, fault.Rule{
				Effect: fault.Error, Operation: "DescribeContinuousBackups", Code: "AccessDeniedException"})
			s.cfg.Tables[0].Backfill = config.Backfill{From: "export", Bucket: "backups"}
		}, []string{"export!"}, "DescribeContinuousBackups"},
		"heartbeats may not be written": {func(t *testing.T, s *stage) {
			s.cfg.Tables[0].Heartbeat = config.Heartbeat{Prefix: "_tr#", Every: 1, Write: true}
			s.inject(t, fault.Rule{Effect: fault.Error, Operation: "PutItem", Code: "AccessDeniedException"})
		}, []string{"heartbeat"}, "dynamodb:PutItem"},
		"heartbeats may be written": {func(_ *testing.T, s *stage) {
			s.cfg.Tables[0].Heartbeat = config.Heartbeat{Prefix: "_tr#", Every: 1, Write: true}
		}, nil, ""},
		"heartbeats are not written": {func(t *testing.T, s *stage) {
			s.cfg.Tables[0].Heartbeat = config.Heartbeat{Prefix: "_tr#", Every: 1}
			s.inject(t, fault.Rule{Effect: fault.Error, Operation: "PutItem", Code: "AccessDeniedException"})
		}, nil, ""},
		"no such export": {func(t *testing.T, s *stage) {
			s.cfg.Tables[0].Backfill = config.Backfill{From: "export", URL: "file://" + t.TempDir()}
		}, []string{"export!"}, "export"},
		"a filtered export": {func(t *testing.T, s *stage) {
			s.exported(t, `,"FilterSpecification":{"ProjectionExpression":"pk"}`)
		}, []string{"export!"}, "not whole: it was made with ProjectionExpression"},
		"a whole export": {func(t *testing.T, s *stage) { s.exported(t, "") }, nil, ""},
		"an export that may not be asked about": {func(t *testing.T, s *stage) {
			s.exported(t, "")
			s.inject(t, fault.Rule{Effect: fault.Error, Operation: "DescribeExport", Code: "AccessDeniedException"})
		}, []string{"export_unconfirmed"}, "allow dynamodb:DescribeExport"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			t.Setenv("AWS_ENDPOINT_URL_S3", s.S3.URL())
			if err := s.Buckets.Create("backups"); err != nil {
				t.Fatal(err)
			}
			c.arrange(t, s)
			want := append([]string{"queue_unverified", "schema!", "storage_unverified"}, c.want...)
			slices.Sort(want)
			got, r := s.run(t, Options{})
			if !slices.Equal(got, want) {
				t.Errorf("%v, want %v\n%+v", got, want, r.Environment)
			}
			if !slices.ContainsFunc(r.Environment, func(p problem.Problem) bool {
				return (slices.Contains(c.want, p.Code+"!") || slices.Contains(c.want, p.Code)) &&
					strings.Contains(p.What+p.Hint, c.says)
			}) && c.says != "" {
				t.Errorf("nothing says %q: %+v", c.says, r.Environment)
			}
		})
	}
}

// exported makes the first start copy an export. A request for it has more members.
func (s *stage) exported(t *testing.T, more string) {
	t.Helper()
	s.Call("UpdateContinuousBackups",
		`{"TableName":"Orders","PointInTimeRecoverySpecification":{"PointInTimeRecoveryEnabled":true}}`)
	if err := s.Buckets.Create("exports"); err != nil {
		t.Fatal(err)
	}
	s.Call("ExportTableToPointInTime",
		`{"TableArn":"arn:aws:dynamodb:us-east-1:000000000000:table/Orders","S3Bucket":"exports"`+more+`}`)
	s.DynamoDB.FinishExports()
	s.cfg.Tables[0].Backfill = config.Backfill{From: "export", URL: "file://" + s.Buckets.Dir("exports")}
}

// TestBulkLoadsAreNamed: of the tables that are replicated, those that a load writes to now; where
// nobody may ask, one line.
func TestBulkLoadsAreNamed(t *testing.T) {
	s := newStage(t)
	statuses := []string{"IN_PROGRESS", "COMPLETED", "CANCELLING", "FAILED"}
	tables := map[string]string{"IN_PROGRESS": "Orders", "COMPLETED": "Orders", "FAILED": "Orders",
		"CANCELLING": "arn:aws:dynamodb:us-east-1:000000000000:table/Others"}
	s.DynamoDB.Use(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			target := r.Header.Get("X-Amz-Target")
			if !strings.Contains(target, "BulkOperation") {
				next.ServeHTTP(rw, r)
				return
			}
			body, _ := io.ReadAll(r.Body)
			rw.Header().Set("Content-Type", "application/x-amz-json-1.0")
			for i, status := range statuses {
				more := fmt.Sprintf(`,"NextToken":"%d"`, i+1)
				if i == len(statuses)-1 {
					more = ""
				}
				switch {
				case strings.HasSuffix(target, ".DescribeBulkOperation") && strings.Contains(string(body), status):
					_, _ = fmt.Fprintf(rw, `{"BulkOperationDescription":{"TableDetails":[{"TableName":%q}]}}`, tables[status])
				case strings.HasSuffix(target, ".ListBulkOperations") &&
					strings.Contains(string(body), fmt.Sprintf(`"NextToken":"%d"`, i)) == (i > 0) && (i > 0 || string(body) == "{}"):
					_, _ = fmt.Fprintf(rw, `{"BulkOperationsSummaryList":[{"BulkOperationArn":"arn:load/%[1]s",`+
						`"BulkOperationStatus":"%[1]s","StartTime":1795263000}]%[2]s}`, status, more)
				default:
					continue
				}
				return
			}
		})
	})
	codes, r := s.run(t, Options{})
	found := 0
	for _, p := range r.Environment {
		if p.Code == "bulk_load" {
			found++
			if !strings.Contains(p.What, "arn:load/IN_PROGRESS loads items into Orders since 2026-11-21T12:10:00Z") {
				t.Error(p.What)
			}
		}
	}
	if found != 1 || slices.Contains(codes, "bulk_unknown") {
		t.Errorf("%d loads are named: %v", found, codes)
	}
	s = newStage(t)
	s.inject(t, fault.Rule{Effect: fault.Error, Operation: "ListBulkOperations", Code: "AccessDeniedException"})
	if codes, _ = s.run(t, Options{}); !slices.Contains(codes, "bulk_unknown") || slices.Contains(codes, "bulk_load") {
		t.Errorf("denied: %v", codes)
	}
}

// TestPoliciesAreThoseOfTheDocs: what check prints and what the page says must not drift apart.
func TestPoliciesAreThoseOfTheDocs(t *testing.T) {
	page, err := os.ReadFile("../docs/credentials.md")
	if err != nil {
		t.Fatal(err)
	}
	for name, backfill := range map[string]config.Backfill{
		"scan":               {},
		"an export that is":  {From: "export", URL: "s3://B/P"},
		"an export asked of": {From: "export", Bucket: "B", Prefix: "P"},
	} {
		cfg := config.Default()
		cfg.Source.Region, cfg.Bigtable.Project, cfg.Bigtable.Instance = "REGION", "PROJECT", "INSTANCE"
		cfg.Tables = []config.Table{{
			Source: "Products", Target: "products", Backfill: backfill,
			Heartbeat: config.Heartbeat{Prefix: "_tailrace#", Write: true},
		}}
		hasPolicies(t, name, string(page), policies(&cfg, nil))
		cfg.Archive.URL, cfg.Tables[0].Target = "s3://BUCKET/PREFIX?region=eu-west-1", ""
		p := policies(&cfg, nil)
		hasPolicies(t, name+", archived only in S3", string(page), p)
		if len(p.Google) > 0 || strings.Contains(p.AWS.Text(), "Scan") || !strings.Contains(p.AWS.Text(), "BUCKET/PREFIX/*") {
			t.Errorf("%s, archived only in S3: %+v", name, p)
		}
		cfg.Archive.URL = "gs://BUCKET/PREFIX"
		if p = policies(&cfg, nil); len(p.Google) != 3 {
			t.Errorf("%s, archived only in GCS: %+v", name, p.Google)
		}
		hasPolicies(t, name+", archived only in GCS", string(page), p)
	}
}

func hasPolicies(t *testing.T, name, page string, p *Policies) {
	t.Helper()
	for _, s := range p.AWS.Statement {
		if text := s.text(); !strings.Contains(page, text) {
			t.Errorf("%s: docs/credentials.md lacks\n%s", name, text)
		}
	}
	for _, b := range p.Google {
		if !strings.Contains(page, b.Command) {
			t.Errorf("%s: docs/credentials.md lacks\n%s", name, b.Command)
		}
	}
}

// TestPoliciesNameEachTableAndBucketOnce: tables of one bucket share its statements, and ARNs of
// other partitions hold.
func TestPoliciesNameEachTableAndBucketOnce(t *testing.T) {
	cfg := config.Default()
	cfg.Source.Region = "cn-north-1"
	for _, name := range []string{"Orders", "Carts"} {
		backfill := config.Backfill{From: "export", Bucket: "B"}
		cfg.Tables = append(cfg.Tables, config.Table{Source: name, Target: "t", Backfill: backfill})
	}
	text := policies(&cfg, map[string]string{
		"Orders": "arn:aws-cn:dynamodb:cn-north-1:1:table/Orders", "Carts": "arn:aws-cn:dynamodb:cn-north-1:1:table/Carts",
	}).AWS.Text()
	const want = `{"Version": "2012-10-17", "Statement": [
{"Effect": "Allow", "Action": ["dynamodb:DescribeTable", "dynamodb:DescribeTimeToLive", "dynamodb:Scan", ` +
		`"dynamodb:BatchGetItem"],
 "Resource": ["arn:aws-cn:dynamodb:cn-north-1:1:table/Orders", "arn:aws-cn:dynamodb:cn-north-1:1:table/Carts"]},
{"Effect": "Allow", "Action": ["dynamodb:DescribeStream", "dynamodb:GetShardIterator", "dynamodb:GetRecords"],
 "Resource": ["arn:aws-cn:dynamodb:cn-north-1:1:table/Orders/stream/*", ` +
		`"arn:aws-cn:dynamodb:cn-north-1:1:table/Carts/stream/*"]},
{"Effect": "Allow", "Action": ["dynamodb:ExportTableToPointInTime", "dynamodb:DescribeContinuousBackups"],
 "Resource": ["arn:aws-cn:dynamodb:cn-north-1:1:table/Orders", "arn:aws-cn:dynamodb:cn-north-1:1:table/Carts"]},
{"Effect": "Allow", "Action": "dynamodb:DescribeExport",
 "Resource": ["arn:aws-cn:dynamodb:cn-north-1:1:table/Orders/export/*", ` +
		`"arn:aws-cn:dynamodb:cn-north-1:1:table/Carts/export/*"]},
{"Effect": "Allow", "Action": ["s3:AbortMultipartUpload", "s3:PutObject", "s3:PutObjectAcl"],
 "Resource": "arn:aws-cn:s3:::B/*"},
{"Effect": "Allow", "Action": "s3:GetObject",
 "Resource": "arn:aws-cn:s3:::B/*"},
{"Effect": "Allow", "Action": "s3:ListBucket",
 "Resource": "arn:aws-cn:s3:::B"}
]}`
	if text != want {
		t.Errorf("%s\nwant\n%s", text, want)
	}
}

// TestClusterChangeIsFound: emulators have no app profiles, so the finding is tested without a
// server.
func TestClusterChangeIsFound(t *testing.T) {
	for _, x := range []struct {
		row, now string
		found    bool
	}{{"a", "b", true}, {"a", "a", false}, {"", "b", false}, {"a", "", false}} {
		c := &check{Report: &Report{}, writesTo: x.now}
		c.cluster(&catalog.Table{Table: config.Table{Source: "Orders", Target: "orders"}}, &bigtable.State{Cluster: x.row})
		found := len(c.Environment) == 1 && c.Environment[0].Code == "cluster_changed"
		if found != x.found {
			t.Errorf("%+v: %+v", x, c.Environment)
		}
	}
}
