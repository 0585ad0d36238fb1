# An export with the usual command lines; the environment names the sandbox.
arn=$(aws dynamodb create-table --table-name Shell --attribute-definitions AttributeName=pk,AttributeType=S \
  --key-schema AttributeName=pk,KeyType=HASH --billing-mode PAY_PER_REQUEST \
  --query TableDescription.TableArn --output text)
aws dynamodb put-item --table-name Shell --item '{"pk":{"S":"hat"},"price":{"N":"1"}}'
aws dynamodb update-continuous-backups --table-name Shell \
  --point-in-time-recovery-specification PointInTimeRecoveryEnabled=true \
  --query ContinuousBackupsDescription.PointInTimeRecoveryDescription.PointInTimeRecoveryStatus --output text
s3="aws s3 --endpoint-url $AWS_ENDPOINT_URL_S3"
$s3 mb s3://backups
export=$(aws dynamodb export-table-to-point-in-time --table-arn "$arn" --s3-bucket backups --s3-prefix nightly \
  --query ExportDescription.ExportArn --output text)
status=IN_PROGRESS
while [ "$status" = IN_PROGRESS ]; do
  status=$(aws dynamodb describe-export --export-arn "$export" --query ExportDescription.ExportStatus --output text)
done
aws dynamodb list-exports --table-arn "$arn" --query 'ExportSummaries[0].[ExportStatus,ExportType]' --output text | tr '\t' ' '
$s3 ls --recursive s3://backups/nightly/ | grep -c json.gz
$s3 ls s3://backups/nightly/AWSDynamoDB/ | grep -c PRE
$s3 cp --quiet --recursive s3://backups/nightly copy
find copy -name '*.json.gz' | xargs zcat
printf x >letter
$s3 cp --quiet letter s3://backups/up/letter
$s3 cp s3://backups/up/letter -
