// SPDX-License-Identifier: Apache-2.0

// Package site runs what the documents show against a real API server: every
// kubectl and Helm command, and every manifest. What would change something is
// run as a dry run of the server's; commands of AWS's are only read by its command
// line. It holds nothing but tests.
package site
