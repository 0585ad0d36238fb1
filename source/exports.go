package source

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/tailrace-cdc/replicator/failure"
)

// PointInTime is the range of time that a table can be exported from.
type PointInTime struct {
	Enabled          bool      // point-in-time recovery, without which there are no exports
	Earliest, Latest time.Time // Latest is about five minutes ago; zero when not Enabled
}

// PointInTime returns the range of time that a table can be exported from.
//
// Source:
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_DescribeContinuousBackups.html
func (s *Source) PointInTime(ctx context.Context, table string) (PointInTime, error) {
	call, cancel := context.WithTimeout(ctx, s.callDeadline())
	defer cancel()
	start := time.Now()
	in := &dynamodb.DescribeContinuousBackupsInput{TableName: aws.String(s.Address(table))}
	out, err := s.tables.DescribeContinuousBackups(call, in)
	s.metrics.callEnded(ctx, "DescribeContinuousBackups", start, err)
	if err != nil {
		return PointInTime{}, s.wrapExport(ctx, "describe continuous backups of "+table, err)
	}
	var p PointInTime
	if d := out.ContinuousBackupsDescription; d != nil && d.PointInTimeRecoveryDescription != nil {
		r := d.PointInTimeRecoveryDescription
		p.Enabled = r.PointInTimeRecoveryStatus == types.PointInTimeRecoveryStatusEnabled
		p.Earliest, p.Latest = aws.ToTime(r.EarliestRestorableDateTime), aws.ToTime(r.LatestRestorableDateTime)
	}
	return p, nil
}

// ExportRequest requests an export of a table to S3, in DynamoDB JSON.
type ExportRequest struct {
	TableARN       string
	Bucket, Prefix string
	Time           time.Time // of the state that is exported; zero: now. Not for an incremental export

	// From and To make the export incremental: the items changed from From on and before To, with
	// new and old images. Zero: a full export.
	From, To time.Time

	// ClientToken makes the request repeatable: the same token returns the export that the first
	// request started, for eight hours.
	ClientToken string
}

// StartExport starts an export and returns its ARN. Its progress is asked for with ExportStatus.
//
// Source:
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_ExportTableToPointInTime.html
func (s *Source) StartExport(ctx context.Context, r ExportRequest) (arn string, err error) {
	in := &dynamodb.ExportTableToPointInTimeInput{
		TableArn: &r.TableARN, S3Bucket: &r.Bucket, ExportFormat: types.ExportFormatDynamodbJson,
		ExportType: types.ExportTypeFullExport, ClientToken: nonEmpty(r.ClientToken), S3Prefix: nonEmpty(r.Prefix),
	}
	switch {
	case !r.From.IsZero():
		in.ExportType = types.ExportTypeIncrementalExport
		in.IncrementalExportSpecification = &types.IncrementalExportSpecification{
			ExportFromTime: &r.From, ExportToTime: &r.To, ExportViewType: types.ExportViewTypeNewAndOldImages,
		}
	case !r.Time.IsZero():
		in.ExportTime = &r.Time
	}
	call, cancel := context.WithTimeout(ctx, s.callDeadline())
	defer cancel()
	start := time.Now()
	out, err := s.tables.ExportTableToPointInTime(call, in)
	s.metrics.callEnded(ctx, "ExportTableToPointInTime", start, err)
	op := "export " + r.TableARN + " to s3://" + r.Bucket
	if err != nil {
		return "", s.wrapExport(ctx, op, err)
	}
	if out.ExportDescription == nil || aws.ToString(out.ExportDescription.ExportArn) == "" {
		return "", &Error{Op: op, Class: failure.Transient, Err: errors.New("the reply names no export")}
	}
	return *out.ExportDescription.ExportArn, nil
}

func nonEmpty(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// The states of an export.
const (
	ExportInProgress = string(types.ExportStatusInProgress)
	ExportCompleted  = string(types.ExportStatusCompleted)
	ExportFailed     = string(types.ExportStatusFailed)
)

// ExportStatus is what is known of an export.
type ExportStatus struct {
	ARN    string
	Status string // ExportInProgress, ExportCompleted or ExportFailed
	Type   string // FULL_EXPORT or INCREMENTAL_EXPORT

	// The rest is unknown in a list of exports.
	TableARN, TableID           string
	URL                         string    // of the manifest, as package export opens it; "" before it is completed
	Time                        time.Time // of the exported state; zero for an incremental export
	From, To                    time.Time // of an incremental export
	Started, Ended              time.Time
	Items, Bytes                int64 // 0 before it is completed; Bytes are those that AWS charges for
	FailureCode, FailureMessage string

	// Filters are the members of its FilterSpecification, sorted: the export lacks items, or
	// attributes of them. Nil: it is whole.
	Filters []string
}

// ExportStatus describes an export.
//
// Source: https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_DescribeExport.html
func (s *Source) ExportStatus(ctx context.Context, arn string) (ExportStatus, error) {
	call, cancel := context.WithTimeout(ctx, s.callDeadline())
	defer cancel()
	start := time.Now()
	out, err := s.tables.DescribeExport(call, &dynamodb.DescribeExportInput{ExportArn: &arn})
	s.metrics.callEnded(ctx, "DescribeExport", start, err)
	if err != nil {
		return ExportStatus{}, s.wrapExport(ctx, "describe export "+arn, err)
	}
	if out.ExportDescription == nil {
		err := errors.New("an empty reply")
		return ExportStatus{}, &Error{Op: "describe export " + arn, Class: failure.Transient, Err: err}
	}
	return exportStatus(out.ExportDescription), nil
}

func exportStatus(d *types.ExportDescription) ExportStatus {
	e := ExportStatus{
		ARN: aws.ToString(d.ExportArn), Status: string(d.ExportStatus), Type: string(d.ExportType),
		TableARN: aws.ToString(d.TableArn), TableID: aws.ToString(d.TableId), Time: aws.ToTime(d.ExportTime),
		Started: aws.ToTime(d.StartTime), Ended: aws.ToTime(d.EndTime),
		Items: aws.ToInt64(d.ItemCount), Bytes: aws.ToInt64(d.BilledSizeBytes),
		FailureCode: aws.ToString(d.FailureCode), FailureMessage: aws.ToString(d.FailureMessage),
	}
	if i := d.IncrementalExportSpecification; i != nil {
		e.From, e.To = aws.ToTime(i.ExportFromTime), aws.ToTime(i.ExportToTime)
	}
	e.Filters = filtersOf(d.FilterSpecification)
	if manifest := aws.ToString(d.ExportManifest); manifest != "" && d.ExportStatus == types.ExportStatusCompleted {
		e.URL = "s3://" + aws.ToString(d.S3Bucket) + "/" + manifest
	}
	return e
}

// filtersOf returns the names of a filter's members, without what they say: values of items may be
// in it.
func filtersOf(f *types.FilterSpecification) (names []string) {
	if f == nil {
		return nil
	}
	for name, text := range map[string]*string{
		"FilterExpression": f.FilterExpression, "KeyConditionExpression": f.KeyConditionExpression,
		"ProjectionExpression": f.ProjectionExpression,
	} {
		if text != nil {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		names = []string{"FilterSpecification"}
	}
	slices.Sort(names)
	return names
}

// AskExport describes an export, or returns why DynamoDB cannot be asked about it: it was made in
// another account or region, or more than 90 days ago, or these credentials may not. Errors are
// worth another try.
//
// Rule 13: one denial does not decide that it cannot be asked. An export that is not found must be
// missing in a listing that began after it, and the second answer counts.
func (s *Source) AskExport(ctx context.Context, arn, tableARN string) (st ExportStatus, unknown, err error) {
	st, err = s.ExportStatus(ctx, arn)
	if err == nil || worthRetrying(err) {
		return st, nil, err
	}
	if Classify(err) == failure.Gone {
		all, listing := s.ListExports(ctx, tableARN)
		switch {
		case worthRetrying(listing):
			return ExportStatus{}, nil, listing
		case slices.ContainsFunc(all, func(e ExportStatus) bool { return e.ARN == arn }):
			return ExportStatus{}, nil, &Error{Op: "describe export " + arn, Class: failure.Transient,
				Err: fmt.Errorf("it is listed, and not found: %w", err)}
		}
	}
	if st, err = s.ExportStatus(ctx, arn); err == nil || worthRetrying(err) {
		return st, nil, err
	}
	return ExportStatus{}, err, nil
}

// worthRetrying reports whether an error is temporary, and thus no evidence about the export.
func worthRetrying(err error) bool {
	switch Classify(err) {
	case failure.Transient, failure.Throttled, failure.Canceled:
		return true
	}
	return false
}

// ListExports lists the exports of a table in the last 90 days, with ARN, Status and Type of each.
//
// Source: https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_ListExports.html
func (s *Source) ListExports(ctx context.Context, tableARN string) (all []ExportStatus, err error) {
	op := "list exports of " + tableARN
	in := &dynamodb.ListExportsInput{TableArn: &tableARN}
	for seen := map[string]bool{}; ; {
		out, err := s.listExportsPage(ctx, in)
		if err != nil {
			return nil, s.wrapExport(ctx, op, err)
		}
		for _, e := range out.ExportSummaries {
			all = append(all, ExportStatus{
				ARN: aws.ToString(e.ExportArn), Status: string(e.ExportStatus), Type: string(e.ExportType),
			})
		}
		if aws.ToString(out.NextToken) == "" {
			return all, nil
		}
		if seen[*out.NextToken] {
			return nil, s.wrapExport(ctx, op, ErrRepeatedCursor)
		}
		seen[*out.NextToken] = true
		in.NextToken = out.NextToken
	}
}

func (s *Source) listExportsPage(
	ctx context.Context, in *dynamodb.ListExportsInput,
) (*dynamodb.ListExportsOutput, error) {
	call, cancel := context.WithTimeout(ctx, s.callDeadline())
	defer cancel()
	start := time.Now()
	out, err := s.tables.ListExports(call, in)
	s.metrics.callEnded(ctx, "ListExports", start, err)
	return out, err
}

// withoutExport is a hint: how to copy a table without an export. The first start stores the
// method, so a later change of the file alone has no effect.
const withoutExport = "or copy by a scan: write backfill: scan before the first start; " +
	"later `replicator copy cancel`, then `replicator repair --table NAME`"

// exportErrors are the codes that calls about exports are refused with, as class and as what an
// operator can do.
var exportErrors = map[string]struct {
	class failure.Class
	hint  string
}{
	"PointInTimeRecoveryUnavailableException": {failure.Denied, "point-in-time recovery is off, and exports need it: " +
		"aws dynamodb update-continuous-backups --table-name TABLE " +
		"--point-in-time-recovery-specification PointInTimeRecoveryEnabled=true; " + withoutExport},
	"ContinuousBackupsUnavailableException": {failure.Denied, "continuous backups are not ready for this table yet: " +
		"try again in a few minutes, " + withoutExport},
	"InvalidExportTimeException": {failure.Rejected, "the time is outside the range that point-in-time recovery covers: " +
		"at most 35 days back, from when it was switched on; an incremental export spans 15 minutes to 24 hours"},
	"ExportConflictException": {failure.Rejected, "another export with the same token and other parameters exists: " +
		"wait until it has ended"},
	"ExportNotFoundException": {failure.Gone, "exports are listed for 90 days; check the ARN and the region"},
	"TableNotFoundException":  {failure.Gone, hints[failure.Gone]},
	"LimitExceededException": {failure.Throttled, "the account has too many exports under way: up to 300 at a time, " +
		"of at most 100 TB together"},
	"AccessDeniedException": {failure.Denied, "check the policy: dynamodb:ExportTableToPointInTime on the table, " +
		"dynamodb:DescribeExport on its exports, dynamodb:ListExports, dynamodb:DescribeContinuousBackups, and " +
		"s3:PutObject, s3:AbortMultipartUpload and s3:GetObject in the bucket"},
	"S3AccessDenied": {failure.Denied, "DynamoDB may not write to the bucket: check s3:PutObject and " +
		"s3:AbortMultipartUpload of these credentials, and the policy of the bucket"},
	"S3NoSuchBucket": {failure.Missing, "the bucket does not exist: check its name, or create it in any region"},
	"NoSuchBucket":   {failure.Missing, "the bucket does not exist: check its name, or create it in any region"},
}

// wrapExport is wrap for calls about exports, which have codes with their own classes and hints.
func (s *Source) wrapExport(ctx context.Context, op string, err error) error {
	var api smithy.APIError
	if ctx.Err() == nil && errors.As(err, &api) {
		if known, ok := exportErrors[api.ErrorCode()]; ok {
			return &Error{Op: op, Class: known.class, Hint: known.hint, Err: err}
		}
	}
	return s.wrap(ctx, op, err)
}

// Failure returns why a failed export failed, as an error with class and hint; nil for any other.
func (e *ExportStatus) Failure() error {
	if e.Status != ExportFailed {
		return nil
	}
	failed := &Error{
		Op: "export " + e.ARN, Class: failure.Rejected, Err: errors.New(e.FailureCode + ": " + e.FailureMessage),
	}
	if known, ok := exportErrors[e.FailureCode]; ok {
		failed.Class, failed.Hint = known.class, known.hint
	}
	return failed
}
