// SPDX-License-Identifier: Apache-2.0

package site

import (
	"regexp"
	"strings"
	"testing"
)

// TestAWS has AWS's own command line read every aws command of the documents, and
// look up its options and what they want, until it finds no one at the address it
// is given. None of them is carried out: what AWS would answer is not known here.
func TestAWS(t *testing.T) {
	s := open(t)
	const nobody = "http://127.0.0.1:1"
	s.env = append(s.env,
		"QUEUE_URL="+nobody+"/queue", "AWS_MAX_ATTEMPTS=1", "AWS_PAGER=", "AWS_ACCOUNT_ID=123456789012",
		"AWS_ACCESS_KEY_ID=none", "AWS_SECRET_ACCESS_KEY=none", "AWS_REGION=us-east-1", "AWS_DEFAULT_REGION=us-east-1",
		"policy=Interruption", "kind=subnetIds",
	)
	s.must("mkdir -p $HOME && printf '{}' > $HOME/trust.json", "")
	ran := 0
	for _, p := range s.pages {
		for _, c := range p.Commands("aws") {
			if unfinished(c) {
				continue
			}
			line := strings.NewReplacer("$(", "i-0", "file://trust.json", "file://$HOME/trust.json").Replace(c.Text)
			line, _, _ = strings.Cut(line, " | ")
			if !strings.Contains(c.Text, "$(") {
				line = strings.TrimSuffix(line, ")") // the end of a substitution
			}
			ran++
			out, err := s.sh("bin/moto/bin/"+line+" --endpoint-url "+nobody, "")
			if err == nil || !regexp.MustCompile(`Could not connect to the endpoint URL: "http://127\.0\.0\.1:1/`).MatchString(out) {
				t.Errorf("%s:%d: %s: %v\n%s", c.Page, c.Line, line, err, out)
			}
		}
	}
	t.Logf("aws: %d read, none carried out", ran)
	if ran < 18 {
		t.Errorf("only %d commands", ran)
	}
	if out, err := s.sh("bin/moto/bin/aws eks create-access-entry --cluster-name x --kind EC2_LINUX", ""); err == nil || strings.Contains(out, "connect") {
		t.Errorf("a wrong option is not refused: %s", out)
	}
}
