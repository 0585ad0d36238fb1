package dynamo

import (
	"strconv"
	"strings"
	"time"

	"github.com/tailrace-cdc/replicator/dynamodb/wire"
	"github.com/tailrace-cdc/replicator/sandbox/export"
	"github.com/tailrace-cdc/replicator/sandbox/table"
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
	if bad := checkExportARN(e.TableARN); bad != nil {
		return nil, bad
	}
	if e.EncryptionKey != "" && e.Encryption != "KMS" {
		return nil, invalidExport("KMS Key Id is not supported for this encryption type")
	}
	var bad *wire.Error
	if e.Filter, bad = export.ReadFilter(r.Get("FilterSpecification")); bad != nil {
		return nil, bad
	}
	e.Time = timeOf(r.Get("ExportTime"))
	spec := r.Get("IncrementalExportSpecification")
	switch {
	case e.Incremental && spec == nil:
		return nil, invalidExport("Incremental Export Specification expected when export type is set as Incremental Export")
	case e.Incremental && !spec.Has("ExportFromTime"):
		return nil, invalidExport("ExportFromTime must be provided in IncrementalExportSpecification")
	case spec != nil && !r.Has("ExportType"):
		return nil, invalidExport("Export Type expected to be Incremental Export when incremental export specification is " +
			"provided")
	case !e.Incremental && spec != nil:
		return nil, invalidExport("When Export Type is Full Export , Incremental Export Specification should not be provided")
	case e.Incremental:
		e.From, e.To = timeOf(spec.Get("ExportFromTime")), timeOf(spec.Get("ExportToTime"))
		if e.View = strings.Clone(spec.Str("ExportViewType")); e.View == "" {
			e.View = "NEW_AND_OLD_IMAGES"
		}
	}
	return e, nil
}

// invalidExport returns the error of a request for an export that is wrong in itself. Source:
// ack-api-quirks, services/dynamodb, DDB-EXPORT-003 and DDB-EXPORT-005.
func invalidExport(message string) *wire.Error { return wire.Invalid("Invalid Request: " + message) }

// checkExportARN checks that a request for an export names a table. Source: ack-api-quirks,
// services/dynamodb, DDB-EXPORT-001 and DDB-EXPORT-002.
func checkExportARN(arn string) *wire.Error {
	_, name, ok := strings.Cut(arn, ":table/")
	switch {
	case !ok || !strings.HasPrefix(arn, "arn:"):
		return wire.BadValue("tableArn is not a valid ARN")
	case strings.Contains(name, "/"):
		return invalidExport("Table ARN is invalid.")
	}
	return nil
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
// Source: ack-api-quirks, services/dynamodb, DDB-EXPORT-001 and DDB-EXPORT-004. It has no message
// for a period above 24 hours.
func (e *exportJob) setTimes(now, since time.Time) *wire.Error {
	since = since.Truncate(time.Millisecond)
	if !e.Incremental {
		if e.Time.IsZero() {
			e.Time = now
		}
		if e.Time.Before(since) || e.Time.After(now) {
			return invalidTime("Export Time is invalid")
		}
		return nil
	}
	if e.To.IsZero() {
		e.To = now.Truncate(time.Millisecond)
	}
	const between = "Difference between export period from time and export period to time is "
	switch period := e.To.Sub(e.From); {
	case e.From.Before(since):
		return invalidTime("Incremental export period from time cannot be less than the table creation time : " +
			e.From.Format(time.RFC3339))
	case e.To.After(now):
		return invalidTime("Incremental export period to time cannot be greater than the current time : " +
			e.To.Format(time.RFC3339))
	case period < minPeriod:
		return invalidTime(between + "less than 15 minutes")
	case period > maxPeriod:
		return invalidTime(between + "greater than 24 hours")
	}
	return nil
}

// invalidTime returns the error of times that an export cannot have.
func invalidTime(message string) *wire.Error {
	return &wire.Error{Code: "InvalidExportTimeException", Message: message}
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
