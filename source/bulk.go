package source

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/tailrace-cdc/replicator/failure"
)

// BulkLoad is an operation that loads items from S3 into a table and has not ended.
type BulkLoad struct {
	ARN    string
	Tables []string // names, ARNs and ids of the tables that it loads
	Since  time.Time
}

// Loads reports whether it loads a table.
func (b *BulkLoad) Loads(t *TableInfo) bool {
	return slices.ContainsFunc(b.Tables, func(name string) bool {
		return name == t.Name || name == t.ARN || name != "" && name == t.ID
	})
}

// BulkLoads returns the bulk loads that run in the account and region.
//
// Sources:
//   - https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_ListBulkOperations.html
//   - https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_DescribeBulkOperation.html
func (s *Source) BulkLoads(ctx context.Context) (running []BulkLoad, err error) {
	in := &dynamodb.ListBulkOperationsInput{}
	for seen := map[string]bool{}; ; {
		out, err := s.bulkPage(ctx, in)
		if err != nil {
			return nil, err
		}
		for _, op := range out.BulkOperationsSummaryList {
			switch op.BulkOperationStatus {
			case types.BulkOperationStatusInProgress, types.BulkOperationStatusCancelling:
				b, err := s.bulkLoad(ctx, aws.ToString(op.BulkOperationArn))
				if err != nil {
					return nil, err
				}
				b.Since = aws.ToTime(op.StartTime)
				running = append(running, b)
			}
		}
		next := aws.ToString(out.NextToken)
		switch {
		case next == "":
			return running, nil
		case seen[next]:
			return nil, s.wrap(ctx, "list bulk operations", ErrRepeatedCursor)
		}
		seen[next], in.NextToken = true, out.NextToken
	}
}

// bulkPage returns one page of the operations of the last 90 days.
func (s *Source) bulkPage(
	ctx context.Context, in *dynamodb.ListBulkOperationsInput,
) (*dynamodb.ListBulkOperationsOutput, error) {
	call, cancel := context.WithTimeout(ctx, s.callDeadline())
	defer cancel()
	start := time.Now()
	out, err := s.tables.ListBulkOperations(call, in)
	s.metrics.callEnded(ctx, "ListBulkOperations", start, err)
	if err != nil {
		return nil, s.wrap(ctx, "list bulk operations", err)
	}
	return out, nil
}

// bulkLoad returns which tables an operation loads.
func (s *Source) bulkLoad(ctx context.Context, arn string) (b BulkLoad, err error) {
	op := "describe bulk operation " + arn
	call, cancel := context.WithTimeout(ctx, s.callDeadline())
	defer cancel()
	start := time.Now()
	out, err := s.tables.DescribeBulkOperation(call, &dynamodb.DescribeBulkOperationInput{BulkOperationArn: &arn})
	s.metrics.callEnded(ctx, "DescribeBulkOperation", start, err)
	if err != nil {
		return b, s.wrap(ctx, op, err)
	}
	if out.BulkOperationDescription == nil {
		return b, &Error{Op: op, Class: failure.Transient, Err: errors.New("an empty reply")}
	}
	b.ARN = arn
	for _, t := range out.BulkOperationDescription.TableDetails {
		b.Tables = append(b.Tables, aws.ToString(t.TableName), aws.ToString(t.TableId))
	}
	return b, nil
}
