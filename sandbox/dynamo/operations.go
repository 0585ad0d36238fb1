package dynamo

import "github.com/tailrace-cdc/replicator/sandbox/wire"

var operations map[string]operation

func init() {
	operations = map[string]operation{
		"CreateTable":               {createShape, (*Server).createTable},
		"DescribeTable":             {tableShape, (*Server).describeTable},
		"DeleteTable":               {tableShape, (*Server).deleteTable},
		"UpdateTable":               {updateTableShape, (*Server).updateTable},
		"ListTables":                {listShape, (*Server).listTables},
		"UpdateTimeToLive":          {ttlShape, (*Server).updateTimeToLive},
		"DescribeTimeToLive":        {requestOf(tableName), (*Server).describeTimeToLive},
		"DescribeContinuousBackups": {requestOf(tableName), (*Server).describeBackups},
		"UpdateContinuousBackups":   {pitrShape, (*Server).updateBackups},
		"TagResource":               {tagShape, (*Server).tagResource},
		"UntagResource":             {untagShape, (*Server).untagResource},
		"ListTagsOfResource":        {listTagsShape, (*Server).listTags},
		"DescribeEndpoints":         {anyShape, (*Server).describeEndpoints},
		"DescribeLimits":            {anyShape, (*Server).describeLimits},
		"PutItem":                   {putShape, (*Server).putItem},
		"GetItem":                   {getShape, (*Server).getItem},
		"DeleteItem":                {deleteShape, (*Server).deleteItem},
		"UpdateItem":                {updateShape, (*Server).updateItem},
		"BatchWriteItem":            {batchWriteShape, (*Server).batchWrite},
		"BatchGetItem":              {batchGetShape, (*Server).batchGet},
		"TransactWriteItems":        {transactWriteShape, (*Server).transactWrite},
		"TransactGetItems":          {transactGetShape, (*Server).transactGet},
		"Query":                     {queryShape, (*Server).query},
		"Scan":                      {scanShape, (*Server).scan},
	}
}

// unsupported operations exist in the service and are deliberately not in the sandbox.
var unsupported = map[string]bool{
	"ExecuteStatement": true, "BatchExecuteStatement": true, "ExecuteTransaction": true,
	"CreateBackup": true, "DeleteBackup": true, "DescribeBackup": true, "ListBackups": true,
	"RestoreTableFromBackup": true, "RestoreTableToPointInTime": true,
	"ExportTableToPointInTime": true, "DescribeExport": true, "ListExports": true,
	"ImportTable": true, "DescribeImport": true, "ListImports": true,
	"CreateGlobalTable": true, "DescribeGlobalTable": true, "ListGlobalTables": true, "UpdateGlobalTable": true,
	"DescribeGlobalTableSettings": true, "UpdateGlobalTableSettings": true,
	"DescribeTableReplicaAutoScaling": true, "UpdateTableReplicaAutoScaling": true,
	"EnableKinesisStreamingDestination": true, "DisableKinesisStreamingDestination": true,
	"DescribeKinesisStreamingDestination": true, "UpdateKinesisStreamingDestination": true,
	"DescribeContributorInsights": true, "ListContributorInsights": true, "UpdateContributorInsights": true,
	"PutResourcePolicy": true, "GetResourcePolicy": true, "DeleteResourcePolicy": true,
}

func (s *Server) describeEndpoints(*request) ([]byte, *wire.Error) {
	return []byte(`{"Endpoints":[{"Address":"dynamodb.` + s.o.Region + `.amazonaws.com","CachePeriodInMinutes":1440}]}`), nil
}

func (s *Server) describeLimits(*request) ([]byte, *wire.Error) {
	return []byte(`{"AccountMaxReadCapacityUnits":80000,"AccountMaxWriteCapacityUnits":80000,` +
		`"TableMaxReadCapacityUnits":40000,"TableMaxWriteCapacityUnits":40000}`), nil
}
