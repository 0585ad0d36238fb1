terraform {
  required_version = ">= 1.3"

  required_providers {
    aws    = { source = "hashicorp/aws", version = ">= 5.0" }
    google = { source = "hashicorp/google", version = ">= 6.20" }
  }
}
