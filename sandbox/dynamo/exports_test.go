package dynamo_test

import (
	"fmt"
	"testing"
	"time"
)

// TestExportsAreRefusedAsTheServiceDoes has a table whose past is remembered from now on, so that
// every period of 15 minutes begins too early.
func TestExportsAreRefusedAsTheServiceDoes(t *testing.T) {
	r := newRig(t)
	r.table("ttt", "")
	r.table("off", "")
	r.do("UpdateContinuousBackups", `{'TableName':'ttt','PointInTimeRecoverySpecification':{
		'PointInTimeRecoveryEnabled':true}}`)
	const arn = "arn:aws:dynamodb:us-east-1:000000000000:table/"
	export := func(table, more string) string { return `{'TableArn':'` + table + `','S3Bucket':'bbb'` + more + `}` }
	period := func(from, to string) string {
		return export(arn+"ttt", `,'ExportType':'INCREMENTAL_EXPORT','IncrementalExportSpecification':{'ExportFromTime':`+
			from+`,'ExportToTime':`+to+`}`)
	}
	now := r.clock.Now()
	at := func(d time.Duration) string { return fmt.Sprint(now.Add(d).Unix()) }
	show := func(d time.Duration) string { return time.Unix(now.Add(d).Unix(), 0).UTC().Format(time.RFC3339) }
	const invalid, early = "Invalid Request: ",
		"Incremental export period from time cannot be less than the table creation time : "
	refused := func(name, body, code, message, finding string) refusal {
		return refusal{name, "ExportTableToPointInTime", body, code, message, ackLab + finding}
	}
	r.refuses(t, []refusal{
		refused("no ARN", export("ttt", ""), "ValidationException",
			"One or more parameter values were invalid: tableArn is not a valid ARN", "DDB-EXPORT-001"),
		refused("ARN of an index", export(arn+"ttt/index/ggg", ""), "ValidationException",
			invalid+"Table ARN is invalid.", "DDB-EXPORT-002"),
		refused("another region", export("arn:aws:dynamodb:eu-west-1:000000000000:table/ttt", ""), "TableNotFoundException",
			"Table not found: arn:aws:dynamodb:eu-west-1:000000000000:table/ttt", "DDB-EXPORT-002"),
		refused("no table", export(arn+"none", ""), "TableNotFoundException", "Table not found: "+arn+"none",
			"DDB-EXPORT-001"),
		refused("no past", export(arn+"off", ""), "PointInTimeRecoveryUnavailableException",
			"Point in time recovery is not enabled for table 'off'", "DDB-EXPORT-001"),
		refused("future", export(arn+"ttt", `,'ExportTime':`+at(time.Hour)), "InvalidExportTimeException",
			"Export Time is invalid", "DDB-EXPORT-001"),
		refused("before the past", export(arn+"ttt", `,'ExportTime':`+at(-time.Hour)), "InvalidExportTimeException",
			"Export Time is invalid", "DDB-EXPORT-001"),
		refused("period, but no type", export(arn+"ttt", `,'IncrementalExportSpecification':{'ExportFromTime':1}`),
			"ValidationException", invalid+"Export Type expected to be Incremental Export when incremental export "+
				"specification is provided", "DDB-EXPORT-003"),
		refused("period of a full one", export(arn+"ttt", `,'ExportType':'FULL_EXPORT',
			'IncrementalExportSpecification':{'ExportFromTime':1}`), "ValidationException", invalid+"When Export Type is Full "+
			"Export , Incremental Export Specification should not be provided", "DDB-EXPORT-003"),
		refused("no period", export(arn+"ttt", `,'ExportType':'INCREMENTAL_EXPORT'`), "ValidationException",
			invalid+"Incremental Export Specification expected when export type is set as Incremental Export",
			"DDB-EXPORT-003"),
		refused("empty period", export(arn+"ttt", `,'ExportType':'INCREMENTAL_EXPORT','IncrementalExportSpecification':{}`),
			"ValidationException", invalid+"ExportFromTime must be provided in IncrementalExportSpecification",
			"DDB-EXPORT-003"),
		refused("period of ten minutes", period(at(-10*time.Minute), at(0)), "InvalidExportTimeException",
			early+show(-10*time.Minute), "DDB-EXPORT-004"),
		refused("period of a day and more", period(at(-25*time.Hour), at(0)), "InvalidExportTimeException",
			early+show(-25*time.Hour), "DDB-EXPORT-004"),
		refused("no time for a period yet", period(at(time.Second), at(0)), "InvalidExportTimeException",
			"Difference between export period from time and export period to time is less than 15 minutes",
			"DDB-EXPORT-004"),
		refused("period in the future", period(at(time.Second), at(2*time.Hour)), "InvalidExportTimeException",
			"Incremental export period to time cannot be greater than the current time : "+show(2*time.Hour),
			"DDB-EXPORT-004"),
		refused("period of a table without a past", `{'TableArn':'`+arn+`off','S3Bucket':'bbb',
			'ExportType':'INCREMENTAL_EXPORT','IncrementalExportSpecification':{'ExportFromTime':`+at(-time.Hour)+`}}`,
			"InvalidExportTimeException", early+show(-time.Hour), "DDB-EXPORT-001"),
		refused("key of no encryption", export(arn+"ttt", `,'S3SseKmsKeyId':'kkk'`), "ValidationException",
			invalid+"KMS Key Id is not supported for this encryption type", "DDB-EXPORT-005"),
		{"table, not export", "DescribeExport", `{'ExportArn':'` + arn + `ttt'}`, "ValidationException",
			"Invalid Export ARN", ackLab + "DDB-EXPORT-006"},
		{"no such export", "DescribeExport", `{'ExportArn':'` + arn + `ttt/export/0'}`, "ExportNotFoundException",
			"Export not found: Export not found: " + arn + "ttt/export/0", ackLab + "DDB-EXPORT-006"},
		{"export of another region", "DescribeExport",
			`{'ExportArn':'arn:aws:dynamodb:eu-west-1:000000000000:table/ttt/export/0'}`, "ExportNotFoundException",
			"Export not found: Invalid export arn", ackLab + "DDB-EXPORT-006"},
		{"token of nothing", "ListExports", `{'NextToken':'xyz'}`, "ValidationException",
			invalid + "Provided nextToken is invalid: xyz", ackLab + "DDB-EXPORT-006"},
	})
	r.do("ExportTableToPointInTime", export(arn+"ttt", `,'ClientToken':'one'`))
	r.refuses(t, []refusal{refused("token with another prefix", export(arn+"ttt", `,'ClientToken':'one','S3Prefix':'ppp'`),
		"ExportConflictException", "Export conflict: Duplicate request detected with conflicting parameters",
		"DDB-EXPORT-009")})
}
