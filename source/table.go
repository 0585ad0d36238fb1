package source

import (
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/tailrace-cdc/replicator/failure"
)

// Table describes a table: its identity, stream and key. An error with class Gone means that it
// does not exist.
func (s *Source) Table(ctx context.Context, name string) (TableInfo, error) {
	info, err := s.describeTable(ctx, name)
	if Classify(err) == failure.Gone {
		err = s.confirmGone(ctx, name, err)
	}
	return info, err
}

// confirmGone returns gone, the answer that a table does not exist, if a second answer confirms it;
// otherwise a transient error.
//
// Rule 13: the second answer is of another kind, DescribeTimeToLive. Where that is denied the table
// is described again.
func (s *Source) confirmGone(ctx context.Context, name string, gone error) error {
	_, err := s.ttl(ctx, name)
	if Classify(err) == failure.Denied {
		_, err = s.describeTable(ctx, name)
	}
	switch Classify(err) {
	case failure.Gone:
		return gone
	case failure.None:
		err = errors.New("it was not found, and is there")
	case failure.Canceled:
		return err
	}
	return &Error{Op: "describe table " + name, Class: failure.Transient, Err: err}
}

// describeTable is Table without the confirmation of answers.
func (s *Source) describeTable(ctx context.Context, name string) (TableInfo, error) {
	call, cancel := context.WithTimeout(ctx, s.callDeadline())
	defer cancel()
	start := time.Now()
	out, err := s.tables.DescribeTable(call, &dynamodb.DescribeTableInput{TableName: aws.String(s.Address(name))})
	s.metrics.callEnded(ctx, "DescribeTable", start, err)
	if err != nil {
		return TableInfo{}, s.wrap(ctx, "describe table "+name, err)
	}
	info, err := tableInfoOf(out.Table)
	info.Date = s.observeCall(out.ResultMetadata, start)
	if err != nil {
		return TableInfo{}, &Error{Op: "describe table " + name, Class: failure.Fatal, Err: err}
	}
	s.noteSchema(name, info.Schema)
	info.TTLAttr, info.TTLError = s.ttl(ctx, name)
	return info, nil
}

// ListTables returns the names of all tables of the account in the region.
//
// Source: https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_ListTables.html
func (s *Source) ListTables(ctx context.Context) (names []string, err error) {
	pages := dynamodb.NewListTablesPaginator(s.tables, &dynamodb.ListTablesInput{})
	for pages.HasMorePages() {
		page, err := s.nextTables(ctx, pages)
		if err != nil {
			return nil, err
		}
		names = append(names, page...)
	}
	return names, nil
}

// nextTables returns one page of names, up to 100.
func (s *Source) nextTables(ctx context.Context, pages *dynamodb.ListTablesPaginator) ([]string, error) {
	call, cancel := context.WithTimeout(ctx, s.callDeadline())
	defer cancel()
	start := time.Now()
	out, err := pages.NextPage(call)
	s.metrics.callEnded(ctx, "ListTables", start, err)
	if err != nil {
		return nil, s.wrap(ctx, "list tables", err)
	}
	return out.TableNames, nil
}

// Tags returns the tags of a table, by its ARN. The service allows ten such calls a second for an
// account.
//
// Source:
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_ListTagsOfResource.html
func (s *Source) Tags(ctx context.Context, arn string) (map[string]string, error) {
	tags := map[string]string{}
	for in := (&dynamodb.ListTagsOfResourceInput{ResourceArn: &arn}); ; {
		out, err := s.nextTags(ctx, in)
		if err != nil {
			return nil, err
		}
		for _, t := range out.Tags {
			tags[aws.ToString(t.Key)] = aws.ToString(t.Value)
		}
		if in.NextToken = out.NextToken; aws.ToString(in.NextToken) == "" {
			return tags, nil
		}
	}
}

// nextTags returns one page of tags.
func (s *Source) nextTags(
	ctx context.Context, in *dynamodb.ListTagsOfResourceInput,
) (*dynamodb.ListTagsOfResourceOutput, error) {
	call, cancel := context.WithTimeout(ctx, s.callDeadline())
	defer cancel()
	start := time.Now()
	out, err := s.tables.ListTagsOfResource(call, in)
	s.metrics.callEnded(ctx, "ListTagsOfResource", start, err)
	if err != nil {
		return nil, s.wrap(ctx, "list tags of "+aws.ToString(in.ResourceArn), err)
	}
	return out, nil
}

// ttl returns the name of the TTL attribute, or "" when TTL is off.
func (s *Source) ttl(ctx context.Context, name string) (string, error) {
	call, cancel := context.WithTimeout(ctx, s.callDeadline())
	defer cancel()
	start := time.Now()
	in := &dynamodb.DescribeTimeToLiveInput{TableName: aws.String(s.Address(name))}
	out, err := s.tables.DescribeTimeToLive(call, in)
	s.metrics.callEnded(ctx, "DescribeTimeToLive", start, err)
	if err != nil {
		return "", s.wrap(ctx, "describe time to live of "+name, err)
	}
	d := out.TimeToLiveDescription
	if d == nil {
		return "", nil
	}
	switch d.TimeToLiveStatus {
	case types.TimeToLiveStatusEnabled, types.TimeToLiveStatusEnabling:
		return aws.ToString(d.AttributeName), nil
	}
	return "", nil
}
