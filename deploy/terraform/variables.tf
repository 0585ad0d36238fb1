variable "name" {
  description = "Begins the names of what is made: roles, service accounts, app profiles."
  type        = string
  default     = "tailrace"
}

# The DynamoDB side.

variable "aws_region" {
  description = "Region of the tables, as source.region."
  type        = string
}

variable "tables" {
  description = "Source tables that are replicated: names, or patterns with * and ? as in config.tables."
  type        = list(string)
}

variable "archived_tables" {
  description = "Source tables that are archived only, without rows in Bigtable."
  type        = list(string)
  default     = []
}

variable "list_tables" {
  description = "Whether tables are chosen by a pattern or a tag."
  type        = bool
  default     = false
}

variable "tagged_tables" {
  description = "Of the patterns above, those that are chosen by tag: the tags must be read."
  type        = list(string)
  default     = []
}

variable "exported_tables" {
  description = "Tables that are copied from an export to S3."
  type        = list(string)
  default     = []
}

variable "exports" {
  description = "Where these exports are; ask: whether the replicator asks DynamoDB for them."
  type        = object({ bucket = string, prefix = optional(string, ""), ask = optional(bool, false) })
  default     = null
}

variable "heartbeats" {
  description = "Tables that get heartbeats, and the prefix of their partition keys."
  type        = map(string)
  default     = {}
}

variable "archive" {
  description = "S3 bucket and prefix of archive.url. With make, the module makes the bucket; the days are when objects become cheaper, and when they go."
  type = object({
    bucket          = string
    prefix          = optional(string, "")
    make            = optional(bool, false)
    transition_days = optional(number)
    storage_class   = optional(string, "GLACIER_IR")
    expire_days     = optional(number)
  })
  default = null

  validation {
    condition     = var.archive == null ? true : coalesce(var.archive.expire_days, 3) >= 3
    error_message = "The replicator needs objects of the last three days."
  }
}

# Who the replicator is.

variable "oidc" {
  description = "The cluster whose tokens AWS trusts: its IAM OIDC provider, its issuer without https://, and the service account of the chart."
  type        = object({ provider_arn = string, issuer = string, namespace = string, service_account = string })
  default     = null
}

variable "trusted_services" {
  description = "Services that may give the role to a process: pods.eks.amazonaws.com (EKS pod identity), ec2.amazonaws.com, ecs-tasks.amazonaws.com."
  type        = list(string)
  default     = []
}

variable "google_federation" {
  description = "Whether Google trusts the tokens of the same cluster: with oidc, outside of Google Cloud."
  type        = bool
  default     = false
}

variable "google_members" {
  description = "Further members that may act as the service account; on GKE: serviceAccount:PROJECT.svc.id.goog[NAMESPACE/NAME]."
  type        = list(string)
  default     = []
}

# The Bigtable side.

variable "google_project" {
  description = "Google Cloud project, as bigtable.project."
  type        = string
}

variable "bigtable_instance" {
  description = "Bigtable instance, as bigtable.instance."
  type        = string
}

variable "bigtable_cluster" {
  description = "The cluster that both app profiles route to."
  type        = string
}

variable "make_instance" {
  description = "What the module makes the instance with; without it the instance exists."
  type = object({
    zone         = string
    storage_type = optional(string, "SSD")
    min_nodes    = optional(number, 1)
    max_nodes    = optional(number, 3)
    cpu_target   = optional(number, 60)
  })
  default = null
}

variable "copy_priority" {
  description = "Request priority of copies, resyncs, repairs and comparisons (bigtable.copy_profile)."
  type        = string
  default     = "PRIORITY_LOW"
}

variable "schema_members" {
  description = "Who may run schema --apply; not the replicator."
  type        = list(string)
  default     = []
}
