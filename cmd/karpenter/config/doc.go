// SPDX-License-Identifier: Apache-2.0

// Package config turns command-line arguments and environment variables into a
// Config, with a precise error for each value that it cannot use.
//
// Every setting has a flag and most have an environment variable. For each field, a flag
// takes precedence over a variable, and a variable over the default. An empty variable
// counts as not set. Unlike upstream, which falls back to the default, a variable with an
// unusable value is an error just as a flag is.
package config
