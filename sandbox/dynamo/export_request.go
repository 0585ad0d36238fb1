package dynamo

import (
	"strconv"
	"strings"
	"time"

	"github.com/tailrace-cdc/replicator/sandbox/export"
	"github.com/tailrace-cdc/replicator/sandbox/table"
	"github.com/tailrace-cdc/replicator/sandbox/wire"
)

// readExport reads a request for an export. Its times may be zero: setTimes completes them.
func readExport(r *wire.Node) (*export.Export, *wire.Error) {
	text := func(name, otherwise string) string {
		if v := r.Str(name); v != "" {
			return strings.Clone(v)
		}
		return otherwise
	}
	e := &export.Export{
		TableARN: text("TableArn", ""), Bucket: text("S3Bucket", ""), Prefix: text("S3Prefix", ""),
		Owner: text("S3BucketOwner", ""), Encryption: text("S3SseAlgorithm", "AES256"),
		EncryptionKey: text("S3SseKmsKeyId", ""), Format: text("ExportFormat", "DYNAMODB_JSON"),
		Token: text("ClientToken", ""), Incremental: r.Str("ExportType") == "INCREMENTAL_EXPORT",
	}
	if tableOf(e.TableARN) == e.TableARN {
		return nil, wire.Invalid("Invalid TableArn: " + e.TableARN)
	}
	var bad *wire.Error
	if e.Filter, bad = export.ReadFilter(r.Get("FilterSpecification")); bad != nil {
		return nil, bad
	}
	e.Time = timeOf(r.Get("ExportTime"))
	spec := r.Get("IncrementalExportSpecification")
	switch {
	case e.Incremental && (spec == nil || !spec.Has("ExportFromTime")):
		return nil, wire.Invalid("IncrementalExportSpecification with ExportFromTime is required for INCREMENTAL_EXPORT")
	case e.Incremental && r.Has("ExportTime"):
		return nil, wire.Invalid("ExportTime must not be specified for INCREMENTAL_EXPORT")
	case !e.Incremental && spec != nil:
		return nil, wire.Invalid("IncrementalExportSpecification must not be specified for FULL_EXPORT")
	case e.Incremental:
		e.From, e.To = timeOf(spec.Get("ExportFromTime")), timeOf(spec.Get("ExportToTime"))
		if e.View = strings.Clone(spec.Str("ExportViewType")); e.View == "" {
			e.View = "NEW_AND_OLD_IMAGES"
		}
	}
	return e, nil
}

// timeOf returns the time of a JSON number of seconds, to the millisecond; zero for nil.
func timeOf(n *wire.Node) time.Time {
	if n == nil {
		return time.Time{}
	}
	seconds, err := strconv.ParseFloat(n.Text, 64)
	if err != nil {
		return time.Time{}
	}
	return time.UnixMilli(int64(seconds*1000 + 0.5)).UTC()
}

// The shortest and the longest period of an incremental export. Source:
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/S3DataExport_Requesting.html
const (
	minPeriod = 15 * time.Minute
	maxPeriod = 24 * time.Hour
)

// setTimes completes an export's times, and refuses those outside the time from since to now.
func (e *exportJob) setTimes(now, since time.Time) *wire.Error {
	outside := func(t time.Time, name string) *wire.Error {
		if !t.Before(since.Truncate(time.Millisecond)) && !t.After(now) {
			return nil
		}
		return &wire.Error{Code: "InvalidExportTimeException",
			Message: name + " is outside of the period of point in time recovery, which is from " +
				since.UTC().Format(time.RFC3339) + " to " + now.UTC().Format(time.RFC3339)}
	}
	if !e.Incremental {
		if e.Time.IsZero() {
			e.Time = now
		}
		return outside(e.Time, "ExportTime")
	}
	if e.To.IsZero() {
		e.To = now.Truncate(time.Millisecond)
	}
	switch period := e.To.Sub(e.From); {
	case period < minPeriod:
		return wire.Invalid("Difference between export period start time and end time is less than 15 minutes")
	case period > maxPeriod:
		return wire.Invalid("Difference between export period start time and end time is greater than 24 hours")
	}
	if bad := outside(e.From, "ExportFromTime"); bad != nil {
		return bad
	}
	return outside(e.To, "ExportToTime")
}

// kindOf returns the ExportType of an export.
func kindOf(e *export.Export) string {
	if e.Incremental {
		return "INCREMENTAL_EXPORT"
	}
	return "FULL_EXPORT"
}

// describe returns a reply with an ExportDescription.
func describe(e *export.Export) []byte {
	b := append(wire.AppendField([]byte{'{'}, "ExportDescription"), '{')
	text := func(name, value string) {
		if value != "" {
			b = wire.AppendText(b, name, value)
		}
	}
	at := func(name string, t time.Time) {
		if !t.IsZero() {
			b = table.AppendTime(b, name, t)
		}
	}
	text("ExportArn", e.ARN)
	text("ExportStatus", e.Status)
	at("StartTime", e.Start)
	at("EndTime", e.End)
	text("TableArn", e.TableARN)
	text("TableId", e.TableID)
	at("ExportTime", e.Time)
	text("ClientToken", e.Token)
	text("S3Bucket", e.Bucket)
	text("S3BucketOwner", e.Owner)
	text("S3Prefix", e.Prefix)
	text("S3SseAlgorithm", e.Encryption)
	text("S3SseKmsKeyId", e.EncryptionKey)
	text("FailureCode", e.FailureCode)
	text("FailureMessage", e.FailureMessage)
	text("ExportFormat", e.Format)
	text("ExportType", kindOf(e))
	if e.Status == "COMPLETED" {
		text("ExportManifest", e.Manifest())
		b = wire.AppendInt(b, "BilledSizeBytes", e.Bytes)
		b = wire.AppendInt(b, "ItemCount", e.Items)
	}
	if e.Incremental {
		b = append(wire.AppendField(b, "IncrementalExportSpecification"), '{')
		at("ExportFromTime", e.From)
		at("ExportToTime", e.To)
		text("ExportViewType", e.View)
		b = append(b, '}')
	}
	if e.Filter != nil {
		b = append(wire.AppendField(b, "FilterSpecification"), e.Filter.Spec...)
	}
	return append(b, '}', '}')
}
