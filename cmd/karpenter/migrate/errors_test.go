// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"strings"
	"testing"

	"karpenter/cmd/karpenter/migrate"
)

// TestErrors: what cannot be read names file and line, and says what to do.
func TestErrors(t *testing.T) {
	const pool = "apiVersion: karpenter.sh/v1beta1\nkind: NodePool\n"
	for name, test := range map[string]struct{ text, want string }{
		"template value":  {pool + "metadata:\n  name: {{ .Values.name }}\n", "f.yaml:4: {{ .Values.name }} is a template, not YAML; render it first"},
		"template block":  {"# a chart\n{{- if .Values.pool }}\n" + pool + "{{- end }}\n", "f.yaml:2: {{- if .Values.pool }} is a template"},
		"template inside": {pool + "spec:\n  {{- toYaml .Values.spec | nindent 2 }}\n", "f.yaml:4: {{- toYaml .Values.spec | nindent 2 }} is a template"},
		"indentation":     {"a: b\n---\n" + pool + "metadata:\n   name: a\n  labels: {}\n", "f.yaml:6: not YAML: "},
		"tab":             {pool + "metadata:\n\tname: a\n", "f.yaml:4: not YAML: found character that cannot start any token"},
		"twice":           {pool + "spec: {}\nspec: {}\n", "f.yaml:4: NodePool: spec is there twice"},
		"spec is text":    {pool + "spec: none\n", "f.yaml:3: NodePool: spec: want a mapping"},
		"unknown anchor":  {pool + "spec: *nowhere\n", "not YAML: unknown anchor 'nowhere'"},
		"not UTF-8":       {pool + "spec: {a: \xff}\n", "f.yaml:1: not UTF-8"},
		"endless aliases": {pool + "spec: &a {b: [*a, *a]}\n", "f.yaml:1: "},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := migrate.Migrate([]migrate.Source{{Name: "f.yaml", Text: test.text}}, migrate.Options{})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

// TestNotOurs: what does not mention Karpenter is not even read.
func TestNotOurs(t *testing.T) {
	const text = "a: {{ .Values.b }}\n---\n\tno YAML\n"
	result, err := migrate.Migrate([]migrate.Source{{Name: "f.yaml", Text: text}}, migrate.Options{})
	if err != nil || result.Files[0].Text != text || result.Files[0].Changed {
		t.Errorf("%v, %+v", err, result.Files)
	}
}

// TestMigrateKeepsTextBetweenDocuments: what stands between documents stays.
func TestMigrateKeepsTextBetweenDocuments(t *testing.T) {
	const before, after = "\ufeff%YAML 1.1\n---\n", "--- {apiVersion: v1, kind: ConfigMap, metadata: {name: karpenter}}\n...\n# the end"
	out, _ := migrated(t, before+"apiVersion: karpenter.sh/v1beta1\nkind: NodeClaim\n"+after)
	if !strings.HasPrefix(out, before+"# migrate: ") || !strings.HasSuffix(out, "\n"+after) {
		t.Error(out)
	}
	out, _ = migrated(t, "--- {apiVersion: karpenter.k8s.aws/v1, kind: EC2NodeClass, metadata: {annotations: {compatibility.karpenter.k8s.aws/v1beta1-ubuntu: a}}}\n")
	if !strings.HasPrefix(out, "---\napiVersion: karpenter.k8s.aws/v1\n") {
		t.Error(out)
	}
}

// TestLeftovers: what an earlier run left to people stays in the report until
// they have removed the comment.
func TestLeftovers(t *testing.T) {
	const in = "apiVersion: karpenter.k8s.aws/v1alpha1\nkind: AWSNodeTemplate\nmetadata: {name: a}\nspec:\n" +
		"  subnetSelector: {a: b}\n  securityGroupSelector: {a: b}\n"
	out, report := migrated(t, in)
	if !strings.Contains(report, "1 thing to do by hand") {
		t.Error(report)
	}
	again, report := migrated(t, out)
	if again != out || !strings.Contains(report, "left by an earlier run") || !strings.Contains(report, "0 objects migrated, 1 thing to do by hand") {
		t.Error(report)
	}
	var done []string
	for line := range strings.Lines(out) {
		if !strings.Contains(line, "BY HAND") {
			done = append(done, line)
		}
	}
	if _, report := migrated(t, strings.Join(done, "")); !strings.Contains(report, "0 things to do by hand") {
		t.Error(report)
	}
}

// TestAcrossFiles: a NodePool's kubelet configuration finds its class in
// another file, and names of classes are unique over all files.
func TestAcrossFiles(t *testing.T) {
	result, err := migrate.Migrate([]migrate.Source{
		{Name: "pool.yaml", Text: "apiVersion: karpenter.sh/v1beta1\nkind: NodePool\nmetadata: {name: p}\nspec: {template: {spec: {kubelet: {maxPods: 9}, requirements: [], nodeClassRef: {name: c}}}}\n"},
		{Name: "class.yaml", Text: "apiVersion: karpenter.k8s.aws/v1beta1\nkind: EC2NodeClass\nmetadata: {name: c}\nspec: {amiFamily: AL2023, role: r, subnetSelectorTerms: [{id: subnet-1}], securityGroupSelectorTerms: [{id: sg-1}]}"},
	}, migrate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if text := result.Files[1].Text; !strings.Contains(text, "kubelet:\n    maxPods: 9\n") {
		t.Error(text)
	}
	if joined := migrate.Joined(result.Files); strings.Count(joined, "\n---\n") != 1 {
		t.Error(joined)
	}
}

// TestLineEnds: what is rewritten keeps the line ends of its document.
func TestLineEnds(t *testing.T) {
	out, _ := migrated(t, "apiVersion: karpenter.sh/v1beta1\r\nkind: NodePool\r\nspec: {template: {spec: {requirements: [], nodeClassRef: {name: c}}}}\r\n")
	if strings.Count(out, "\n") != strings.Count(out, "\r\n") {
		t.Errorf("%q", out)
	}
}

// TestRole: flags give classes what they lack.
func TestRole(t *testing.T) {
	for _, options := range []migrate.Options{{Role: "nodes"}, {InstanceProfile: "nodes"}} {
		result, err := migrate.Migrate([]migrate.Source{{Name: "f.yaml", Text: "apiVersion: karpenter.k8s.aws/v1alpha1\nkind: AWSNodeTemplate\nmetadata: {name: a}\nspec:\n" +
			"  subnetSelector: {a: b}\n  securityGroupSelector: {a: b}\n"}}, options)
		if err != nil {
			t.Fatal(err)
		}
		want := "  role: nodes\n"
		if options.Role == "" {
			want = "  instanceProfile: nodes\n"
		}
		if !strings.Contains(result.Files[0].Text, want) || result.Report.ByHand() != 0 {
			t.Error(result.Files[0].Text, result.Report)
		}
	}
}

// TestCopiedClassSaysWhatIsLeft: a class that is made for one pool says as well
// as its original what people have to do.
func TestCopiedClassSaysWhatIsLeft(t *testing.T) {
	const pool = "apiVersion: karpenter.sh/v1alpha5\nkind: Provisioner\nmetadata: {name: %}\nspec: {providerRef: {name: c}, kubeletConfiguration: {maxPods: %}}\n---\n"
	out, _ := migrated(t, strings.ReplaceAll(pool, "%", "1")+strings.ReplaceAll(pool, "%", "2")+
		"apiVersion: karpenter.k8s.aws/v1alpha1\nkind: AWSNodeTemplate\nmetadata: {name: c}\nspec: {subnetSelector: {a: b}, securityGroupSelector: {a: b}}\n")
	if n := strings.Count(out, "migrate, BY HAND: "); n != 2 {
		t.Errorf("%d times by hand in\n%s", n, out)
	}
}
