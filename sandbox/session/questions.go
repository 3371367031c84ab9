package session

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// asker is the service account that may ask the controller for explanations.
const asker = "kube-system/sandbox"

// askerObjects let the asker ask.
func askerObjects() []*unstructured.Unstructured {
	object := func(version, kind, name string, rest map[string]any) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: rest}
		o.SetAPIVersion(version)
		o.SetKind(kind)
		o.SetName(name)
		return o
	}
	namespace, name, _ := strings.Cut(asker, "/")
	account := object("v1", "ServiceAccount", name, map[string]any{})
	account.SetNamespace(namespace)
	const rbac = "rbac.authorization.k8s.io"
	role := name + "-asks"
	return []*unstructured.Unstructured{
		account,
		object(rbac+"/v1", "ClusterRole", role, map[string]any{"rules": []any{
			map[string]any{"nonResourceURLs": []any{"/explain/*", "/snapshot"}, "verbs": []any{"get"}},
		}}),
		object(rbac+"/v1", "ClusterRoleBinding", role, map[string]any{
			"roleRef":  map[string]any{"apiGroup": rbac, "kind": "ClusterRole", "name": role},
			"subjects": []any{map[string]any{"kind": "ServiceAccount", "namespace": namespace, "name": name}},
		}),
	}
}

// AskArguments are what "explain" and "snapshot" of the controller's program need beside the question.
func (s *Session) AskArguments() []string {
	return []string{"--kubeconfig", s.Kubeconfig(), "--service-account", asker, "--address", s.explainAddress()}
}

// Ask runs the controller's program beside the controller, such as "snapshot" with the AskArguments, and returns what it
// prints.
func (s *Session) Ask(ctx context.Context, args ...string) ([]byte, error) {
	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, s.program, args...)
	cmd.Stderr = &said
	printed, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, strings.TrimSpace(said.String()))
	}
	return printed, nil
}

func (s *Session) explainAddress() string { return fmt.Sprintf("127.0.0.1:%d", s.ports.explain) }
