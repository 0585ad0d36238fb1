package raw

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	tabletypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/middleware"
)

// OnlyWhole makes a client refuse each reply with status 200 that lacks a member that every reply
// of the operation has: {} for one, which a proxy may send. The error is a MalformedError, inside
// the SDK's retries. So callers may use these members without a look at whether they are nil, and
// no absent member counts as "none", "off" or "the end".
//
// Rule 13: an empty reply is no answer.
func OnlyWhole(stack *middleware.Stack) error {
	return stack.Finalize.Insert(middleware.FinalizeMiddlewareFunc("OnlyWhole", refuseIncomplete), "Retry",
		middleware.After)
}

func refuseIncomplete(
	ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler,
) (middleware.FinalizeOutput, middleware.Metadata, error) {
	out, md, err := next.HandleFinalize(ctx, in)
	if err != nil {
		return out, md, err
	}
	if lacks := missing(out.Result); lacks != "" {
		return out, md, &MalformedError{fmt.Errorf("the reply has no %s", lacks)}
	}
	return out, md, nil
}

// member is a member of a reply, and whether it is there.
type member struct {
	name  string
	there bool
}

// first returns the name of the first member that is not there; "" if all are.
func first(members ...member) string {
	for _, m := range members {
		if !m.there {
			return m.name
		}
	}
	return ""
}

// missing returns the name of a member that a reply lacks and must have. It is "" for replies that
// are read raw, because the reader of the body checks their members, and for replies of which
// nothing is read.
func missing(reply any) string {
	switch out := reply.(type) {
	case *dynamodb.DescribeTableOutput:
		return inTable(out.Table)
	case *dynamodb.DescribeTimeToLiveOutput:
		d := out.TimeToLiveDescription
		return first(member{"TimeToLiveStatus", d != nil && d.TimeToLiveStatus != ""})
	case *dynamodb.DescribeContinuousBackupsOutput:
		d := out.ContinuousBackupsDescription
		return first(member{"ContinuousBackupsStatus", d != nil && d.ContinuousBackupsStatus != ""})
	case *dynamodb.ListTablesOutput:
		return first(member{"TableNames", out.TableNames != nil})
	case *dynamodb.ListExportsOutput:
		return inExports(out.ExportSummaries)
	case *dynamodb.ListBulkOperationsOutput:
		return first(member{"BulkOperationsSummaryList", out.BulkOperationsSummaryList != nil})
	case *dynamodb.DescribeExportOutput:
		return inExport(out.ExportDescription)
	case *dynamodb.ExportTableToPointInTimeOutput:
		d := out.ExportDescription
		return first(member{"ExportArn", d != nil && !empty(d.ExportArn)})
	case *s3.ListObjectsV2Output:
		return inObjects(out)
	case *dynamodbstreams.DescribeStreamOutput:
		return inStream(out.StreamDescription)
	case *dynamodbstreams.GetShardIteratorOutput:
		return first(member{"ShardIterator", !empty(out.ShardIterator)})
	}
	return ""
}

func empty(s *string) bool { return aws.ToString(s) == "" }

func inTable(t *tabletypes.TableDescription) string {
	if t == nil {
		return "Table"
	}
	return first(member{"TableName", !empty(t.TableName)}, member{"TableStatus", t.TableStatus != ""},
		member{"KeySchema", len(t.KeySchema) > 0}, member{"AttributeDefinitions", len(t.AttributeDefinitions) > 0})
}

func inExports(all []tabletypes.ExportSummary) string {
	members := []member{{"ExportSummaries", all != nil}}
	for i := range all {
		members = append(members, member{"ExportArn", !empty(all[i].ExportArn)})
	}
	return first(members...)
}

func inExport(d *tabletypes.ExportDescription) string {
	if d == nil {
		return "ExportDescription"
	}
	return first(member{"ExportArn", !empty(d.ExportArn)}, member{"ExportStatus", d.ExportStatus != ""},
		member{"TableArn", !empty(d.TableArn)})
}

// inObjects looks into a listing of a bucket. A listing that is cut off and names no continuation
// would count as complete, and the library that reads listings needs the times of all objects.
func inObjects(out *s3.ListObjectsV2Output) string {
	members := []member{
		{"Name", !empty(out.Name)},
		{"NextContinuationToken", !aws.ToBool(out.IsTruncated) || !empty(out.NextContinuationToken)},
	}
	for i := range out.Contents {
		o := &out.Contents[i]
		members = append(members, member{"Key", !empty(o.Key)}, member{"LastModified", o.LastModified != nil},
			member{"Size", o.Size != nil})
	}
	for i := range out.CommonPrefixes {
		members = append(members, member{"Prefix", !empty(out.CommonPrefixes[i].Prefix)})
	}
	return first(members...)
}

func inStream(d *streamtypes.StreamDescription) string {
	if d == nil {
		return "StreamDescription"
	}
	members := []member{{"StreamStatus", d.StreamStatus != ""}, {"Shards", d.Shards != nil}}
	for i := range d.Shards {
		members = append(members, member{"ShardId", !empty(d.Shards[i].ShardId)})
	}
	return first(members...)
}
