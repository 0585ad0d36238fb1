package dynamo

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tailrace-cdc/replicator/dynamodb/wire"
	"github.com/tailrace-cdc/replicator/sandbox/export"
	"github.com/tailrace-cdc/replicator/sandbox/table"
)

// exports are the exports of all tables, including deleted tables.
type exports struct {
	finish sync.Mutex // held while exports are written

	mu    sync.Mutex
	all   []*exportJob // oldest first
	takes time.Duration
	files int
}

// exportJob is an export and what it still has to write.
type exportJob struct {
	export.Export
	due   time.Time
	lines []iter.Seq[export.Line] // as of the export's time; nil once it is written
}

// SetExports sets how long exports are IN_PROGRESS on the sandbox's clock, and into how many data
// files they write; 0 files are as many as the table has partitions.
func (s *Server) SetExports(takes time.Duration, files int) {
	s.exports.mu.Lock()
	defer s.exports.mu.Unlock()
	s.exports.takes, s.exports.files = takes, files
}

// exportTable answers ExportTableToPointInTime. What is to be written is fixed now, and written by
// FinishExports.
func (s *Server) exportTable(r *call) ([]byte, *wire.Error) {
	e, bad := readExport(r.Node)
	if bad != nil {
		return nil, bad
	}
	s.exports.mu.Lock()
	defer s.exports.mu.Unlock()
	if old := s.exports.repeated(e); old != nil {
		if !old.sameRequest(e) {
			return nil, &wire.Error{Code: "ExportConflictException",
				Message: "Export conflict: Duplicate request detected with conflicting parameters"} // DDB-EXPORT-009
		}
		return describe(&old.Export), nil
	}
	t, bad := s.findAny(tableOf(e.TableARN))
	if bad != nil || s.arn(t.Name) != e.TableARN {
		return nil, &wire.Error{Code: "TableNotFoundException", Message: "Table not found: " + e.TableARN}
	}
	t.Lock()
	defer t.Unlock()
	job := &exportJob{Export: *e}
	if bad := s.begin(job, t); bad != nil {
		return nil, bad
	}
	s.exports.all = append(s.exports.all, job)
	return describe(&job.Export), nil
}

// begin checks an export's times and fixes what it will write. The caller holds the locks of
// exports and table.
func (s *Server) begin(e *exportJob, t *table.Table) *wire.Error {
	now := s.o.Clock.Now()
	since, kept := earliestRestorable(t, now)
	if !t.Def.PointInTime && e.Incremental && e.From.Before(t.Def.Created) {
		return e.setTimes(now, t.Def.Created)
	}
	if !t.Def.PointInTime || !kept {
		return &wire.Error{Code: "PointInTimeRecoveryUnavailableException",
			Message: "Point in time recovery is not enabled for table '" + t.Name + "'"}
	}
	if bad := e.setTimes(now, since); bad != nil {
		return bad
	}
	e.ID, e.Start, e.Status = export.NewID(now), now, "IN_PROGRESS"
	e.Table, e.TableARN, e.TableID = t.Name, s.arn(t.Name), t.Def.ID
	e.ARN = e.TableARN + "/export/" + e.ID
	parts := int64(s.exports.files)
	if parts == 0 {
		parts = int64(t.Def.Partitions())
	}
	if e.Incremental {
		e.lines = export.Incremental(&t.Schema, t.Changes(e.From, e.To), e.Filter, e.View == "NEW_AND_OLD_IMAGES", parts)
	} else {
		e.lines = export.Full(t.AsOf(e.Time), e.Filter, parts)
	}
	e.due = now.Add(s.exports.takes)
	if b := s.o.Buckets; b != nil && b.Exists(e.Bucket) {
		if err := e.Begin(b); err != nil {
			return &wire.Error{Code: "InternalServerError", Message: err.Error()}
		}
	}
	return nil
}

// repeated returns the export that has the client token of a request, nil if there is none.
func (x *exports) repeated(e *export.Export) *exportJob {
	for _, old := range x.all {
		if e.Token != "" && old.Token == e.Token {
			return old
		}
	}
	return nil
}

// sameRequest reports whether a request with the token of this export has the same parameters.
func (e *exportJob) sameRequest(r *export.Export) bool {
	same := func(asked, got time.Time) bool { return asked.IsZero() || asked.Equal(got) }
	return tableOf(r.TableARN) == e.Table && r.Bucket == e.Bucket && r.Prefix == e.Prefix && r.Format == e.Format &&
		r.Incremental == e.Incremental && r.View == e.View && r.Filter.Same(e.Filter) &&
		same(r.Time, e.Time) && same(r.From, e.From) && same(r.To, e.To)
}

// FinishExports writes the exports that are due, and returns when it has, one call after the other.
func (s *Server) FinishExports() {
	s.exports.finish.Lock()
	defer s.exports.finish.Unlock()
	now := s.o.Clock.Now()
	s.exports.mu.Lock()
	var due []*exportJob
	for _, e := range s.exports.all {
		if e.lines != nil && !now.Before(e.due) {
			due = append(due, e)
		}
	}
	s.exports.mu.Unlock()
	for _, e := range due {
		done := s.write(e)
		s.exports.mu.Lock()
		e.Export, e.lines = done, nil
		s.exports.mu.Unlock()
	}
}

// write writes an export and returns it as it is afterwards.
func (s *Server) write(e *exportJob) export.Export {
	done := e.Export
	done.Status, done.End = "COMPLETED", s.o.Clock.Now()
	var err error
	switch b := s.o.Buckets; {
	case b == nil || !b.Exists(e.Bucket):
		err = errNoBucket
	default:
		err = done.Write(b, e.lines)
	}
	if err == nil {
		return done
	}
	done.Status, done.FailureCode, done.FailureMessage = "FAILED", "S3NoSuchBucket", "The specified bucket does not exist"
	if !errors.Is(err, errNoBucket) {
		done.FailureCode, done.FailureMessage = "UNKNOWN", err.Error()
	}
	return done
}

// errNoBucket is the failure of an export to a bucket that does not exist.
var errNoBucket = errors.New("no bucket")

// describeExport answers DescribeExport. Source of its errors: ack-api-quirks, services/dynamodb,
// DDB-EXPORT-006.
func (s *Server) describeExport(r *call) ([]byte, *wire.Error) {
	arn := r.Str("ExportArn")
	_, rest, ok := strings.Cut(arn, ":table/")
	if !ok || !strings.HasPrefix(arn, "arn:") || !strings.Contains(rest, "/export/") {
		return nil, wire.Invalid("Invalid Export ARN")
	}
	missing := "Export not found: " + arn
	if !strings.HasPrefix(arn, s.arn("")) {
		missing = "Invalid export arn"
	}
	s.exports.mu.Lock()
	defer s.exports.mu.Unlock()
	for _, e := range s.exports.all {
		if e.ARN == arn {
			return describe(&e.Export), nil
		}
	}
	return nil, &wire.Error{Code: "ExportNotFoundException", Message: "Export not found: " + missing}
}

// listExports answers ListExports: a page of exports, the newest first, of a table or of all, also
// of those that are gone. NextToken is the ARN of the page's last export. Source of the order, and
// that a table does not have the exports of one that had its name: ack-api-quirks,
// services/dynamodb, DDB-EXPORT-017 and DDB-EXPORT-020.
func (s *Server) listExports(r *call) ([]byte, *wire.Error) {
	limit, ok := r.Int("MaxResults")
	if !ok {
		limit = 25
	}
	id := "" // of the table
	if t, err := s.findAny(tableOf(r.Str("TableArn"))); err == nil {
		t.RLock()
		id = t.Def.ID
		t.RUnlock()
	}
	s.exports.mu.Lock()
	defer s.exports.mu.Unlock()
	from := len(s.exports.all) - 1
	if token := r.Str("NextToken"); token != "" {
		at := slices.IndexFunc(s.exports.all, func(e *exportJob) bool { return e.ARN == token })
		if at < 0 {
			return nil, invalidExport("Provided nextToken is invalid: " + token) // DDB-EXPORT-006
		}
		from = at - 1
	}
	var page []*exportJob
	for ; from >= 0 && int64(len(page)) <= limit; from-- {
		if e := s.exports.all[from]; !r.Has("TableArn") || e.TableID == id {
			page = append(page, e)
		}
	}
	return appendSummaries(page, int(limit)), nil
}

// appendSummaries returns a reply with up to limit exports, and with a token if there are more.
func appendSummaries(page []*exportJob, limit int) []byte {
	b := append(wire.AppendField([]byte{'{'}, "ExportSummaries"), '[')
	for i, e := range page[:min(len(page), limit)] {
		if i > 0 {
			b = append(b, ',')
		}
		b = wire.AppendText(append(b, '{'), "ExportArn", e.ARN)
		b = wire.AppendText(b, "ExportStatus", e.Status)
		b = append(wire.AppendText(b, "ExportType", kindOf(&e.Export)), '}')
	}
	b = append(b, ']')
	if len(page) > limit {
		b = wire.AppendText(b, "NextToken", page[limit-1].ARN)
	}
	return append(b, '}')
}

// SaveExports writes all exports, without what those in progress have still to write.
func (s *Server) SaveExports(w io.Writer) error {
	s.exports.mu.Lock()
	defer s.exports.mu.Unlock()
	all := []export.Export{}
	for _, e := range s.exports.all {
		all = append(all, e.Export)
	}
	return json.NewEncoder(w).Encode(all)
}

// RestoreExports reads what SaveExports wrote. Exports that were in progress have failed: the
// table's past is not saved.
func (s *Server) RestoreExports(r io.Reader) error {
	var all []export.Export
	if err := json.NewDecoder(r).Decode(&all); err != nil {
		return fmt.Errorf("restore exports: %w", err)
	}
	s.exports.mu.Lock()
	defer s.exports.mu.Unlock()
	for _, e := range all {
		if e.Status == "IN_PROGRESS" {
			e.Status, e.FailureCode, e.FailureMessage = "FAILED", "UNKNOWN", "The sandbox was stopped meanwhile"
		}
		s.exports.all = append(s.exports.all, &exportJob{Export: e})
	}
	return nil
}
