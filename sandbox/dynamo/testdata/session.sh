# A session as a user of the AWS CLI has it; what it prints is in session.txt.
set -u
ddb() { aws --endpoint-url "$ENDPOINT" --output json dynamodb "$@" 2>&1 | python3 -c '
import json, sys
s = sys.stdin.read()
try: print(json.dumps(json.loads(s), sort_keys=True))
except ValueError: print(s.strip())'; }
T="--table-name Products"
ddb create-table $T --attribute-definitions AttributeName=pk,AttributeType=S AttributeName=sk,AttributeType=S \
  --key-schema AttributeName=pk,KeyType=HASH AttributeName=sk,KeyType=RANGE --billing-mode PAY_PER_REQUEST \
  --stream-specification StreamEnabled=true,StreamViewType=NEW_AND_OLD_IMAGES --query TableDescription.TableStatus
ddb list-tables
ddb put-item $T --item '{"pk":{"S":"hats"},"sk":{"S":"fedora"},"price":{"N":"12.50"}}'
ddb put-item $T --item '{"pk":{"S":"hats"},"sk":{"S":"fedora"}}' --condition-expression 'attribute_not_exists(pk)'
ddb update-item $T --key '{"pk":{"S":"hats"},"sk":{"S":"fedora"}}' --update-expression 'SET price = price - :d ADD tags :t' \
  --expression-attribute-values '{":d":{"N":"2.5"},":t":{"SS":["warm","black"]}}' --return-values UPDATED_NEW
ddb get-item $T --key '{"pk":{"S":"hats"},"sk":{"S":"fedora"}}' --consistent-read --return-consumed-capacity TOTAL
ddb batch-write-item --request-items '{"Products":[{"PutRequest":{"Item":{"pk":{"S":"hats"},"sk":{"S":"bowler"}}}},{"PutRequest":{"Item":{"pk":{"S":"hats"},"sk":{"S":"trilby"}}}}]}'
ddb batch-get-item --request-items '{"Products":{"Keys":[{"pk":{"S":"hats"},"sk":{"S":"bowler"}},{"pk":{"S":"no"},"sk":{"S":"no"}}]}}'
ddb query $T --key-condition-expression 'pk = :p AND sk BETWEEN :a AND :b' --expression-attribute-values '{":p":{"S":"hats"},":a":{"S":"a"},":b":{"S":"g"}}' --projection-expression sk
ddb scan $T --select COUNT --filter-expression 'attribute_exists(price)'
ddb transact-write-items --transact-items '[{"Delete":{"TableName":"Products","Key":{"pk":{"S":"hats"},"sk":{"S":"trilby"}}}},{"ConditionCheck":{"TableName":"Products","Key":{"pk":{"S":"hats"},"sk":{"S":"fedora"}},"ConditionExpression":"attribute_not_exists(pk)"}}]'
ddb transact-get-items --transact-items '[{"Get":{"TableName":"Products","Key":{"pk":{"S":"hats"},"sk":{"S":"trilby"}}}}]'
ddb delete-item $T --key '{"pk":{"S":"hats"},"sk":{"S":"fedora"}}' --return-values ALL_OLD
ddb update-time-to-live $T --time-to-live-specification Enabled=true,AttributeName=gone
ddb describe-time-to-live $T
ddb describe-continuous-backups $T
ddb tag-resource --resource-arn arn:aws:dynamodb:us-east-1:000000000000:table/Products --tags Key=a,Value=b
ddb list-tags-of-resource --resource-arn arn:aws:dynamodb:us-east-1:000000000000:table/Products
ddb untag-resource --resource-arn arn:aws:dynamodb:us-east-1:000000000000:table/Products --tag-keys a
ddb update-table $T --stream-specification StreamEnabled=false --query TableDescription.StreamSpecification
ddb describe-table $T --query 'Table.[TableStatus,ItemCount,KeySchema[1].AttributeName]'
ddb delete-table $T --query TableDescription.TableStatus
ddb describe-table $T
