package dynamo

import (
	"github.com/tailrace-cdc/replicator/dynamodb/wire"
	"github.com/tailrace-cdc/replicator/sandbox/listing"
	"github.com/tailrace-cdc/replicator/sandbox/request"
)

// operations are the supported operations by name.
var operations map[string]operation

// init fills operations: a variable with this value would depend on itself, because methods refer
// to operations.
func init() {
	operations = map[string]operation{
		"CreateTable":               {request.CreateTable, (*Server).createTable},
		"DescribeTable":             {request.OfTable, (*Server).describeTable},
		"DeleteTable":               {request.OfTable, (*Server).deleteTable},
		"UpdateTable":               {request.UpdateTable, (*Server).updateTable},
		"ListTables":                {request.ListTables, (*Server).listTables},
		"UpdateTimeToLive":          {request.UpdateTimeToLive, (*Server).updateTimeToLive},
		"DescribeTimeToLive":        {request.OfItemTable, (*Server).describeTimeToLive},
		"DescribeContinuousBackups": {request.OfItemTable, (*Server).describeBackups},
		"UpdateContinuousBackups":   {request.UpdateContinuousBackups, (*Server).updateBackups},
		"ExportTableToPointInTime":  {request.ExportTable, (*Server).exportTable},
		"DescribeExport":            {request.DescribeExport, (*Server).describeExport},
		"ListExports":               {request.ListExports, (*Server).listExports},
		"ListBulkOperations":        {request.Anything, (*Server).listBulkOperations},
		"TagResource":               {request.TagResource, (*Server).tagResource},
		"UntagResource":             {request.UntagResource, (*Server).untagResource},
		"ListTagsOfResource":        {request.ListTagsOfResource, (*Server).listTags},
		"DescribeEndpoints":         {request.Anything, (*Server).describeEndpoints},
		"DescribeLimits":            {request.Anything, (*Server).describeLimits},
		"PutItem":                   {request.PutItem, (*Server).putItem},
		"GetItem":                   {request.GetItem, (*Server).getItem},
		"DeleteItem":                {request.DeleteItem, (*Server).deleteItem},
		"UpdateItem":                {request.UpdateItem, (*Server).updateItem},
		"BatchWriteItem":            {request.BatchWriteItem, (*Server).batchWrite},
		"BatchGetItem":              {request.BatchGetItem, (*Server).batchGet},
		"TransactWriteItems":        {request.TransactWriteItems, (*Server).transactWrite},
		"TransactGetItems":          {request.TransactGetItems, (*Server).transactGet},
		"Query":                     {request.Query, (*Server).query},
		"Scan":                      {request.Scan, (*Server).scan},
	}
}

// unsupported are the operations of the service that the sandbox deliberately lacks.
var unsupported = map[string]bool{
	"ExecuteStatement": true, "BatchExecuteStatement": true, "ExecuteTransaction": true,
	"CreateBackup": true, "DeleteBackup": true, "DescribeBackup": true, "ListBackups": true,
	"RestoreTableFromBackup": true, "RestoreTableToPointInTime": true,
	"StartBulkPutItems": true, "DescribeBulkOperation": true, "CancelBulkOperation": true,
	"ImportTable": true, "DescribeImport": true, "ListImports": true,
	"CreateGlobalTable": true, "DescribeGlobalTable": true, "ListGlobalTables": true, "UpdateGlobalTable": true,
	"DescribeGlobalTableSettings": true, "UpdateGlobalTableSettings": true,
	"DescribeTableReplicaAutoScaling": true, "UpdateTableReplicaAutoScaling": true,
	"EnableKinesisStreamingDestination": true, "DisableKinesisStreamingDestination": true,
	"DescribeKinesisStreamingDestination": true, "UpdateKinesisStreamingDestination": true,
	"DescribeContributorInsights": true, "ListContributorInsights": true, "UpdateContributorInsights": true,
	"PutResourcePolicy": true, "GetResourcePolicy": true, "DeleteResourcePolicy": true,
}

// describeEndpoints returns the address that the client used; otherwise a client that discovers
// endpoints would go on to the real service. It includes the scheme, which the service leaves out,
// because clients then assume https.
func (s *Server) describeEndpoints(r *call) ([]byte, *wire.Error) {
	b := append(wire.AppendField([]byte{'{'}, "Endpoints"), '[', '{')
	b = wire.AppendText(b, "Address", r.origin)
	return append(wire.AppendInt(b, "CachePeriodInMinutes", 1440), '}', ']', '}'), nil
}

// describeLimits returns the default quotas of an account.
func (s *Server) describeLimits(*call) ([]byte, *wire.Error) {
	return []byte(`{"AccountMaxReadCapacityUnits":80000,"AccountMaxWriteCapacityUnits":80000,` +
		`"TableMaxReadCapacityUnits":40000,"TableMaxWriteCapacityUnits":40000}`), nil
}

// listBulkOperations returns that none were started.
func (s *Server) listBulkOperations(*call) ([]byte, *wire.Error) {
	return []byte(`{"BulkOperationsSummaryList":[]}`), nil
}

func (s *Server) query(r *call) ([]byte, *wire.Error) { return listing.Query(r.Node, s.host()) }

func (s *Server) scan(r *call) ([]byte, *wire.Error) { return listing.Scan(r.Node, s.host()) }

// host returns what queries and scans need of the server.
func (s *Server) host() listing.Host {
	return listing.Host{Find: s.find, Reads: s.Reads, Lagging: s.lagging}
}
