package migrate

import (
	"encoding/json"
	"errors"
	"strings"

	"sigs.k8s.io/yaml"

	"karpenter/api/aws/kubelet"
	awsv1 "karpenter/api/aws/v1"
	v1 "karpenter/api/v1"
)

// check reports what the controller would find fault with.
func (o *object) check() {
	content, err := render(clone(o.root), style{indent: 2})
	if err != nil || strings.Contains(content, "${") || o.version != "v1" && !o.changed {
		return // not ours to judge before it is filled in, or converted
	}
	switch at(o.root, "kind").Value {
	case "NodePool":
		var pool v1.NodePool
		if err = yaml.Unmarshal([]byte(content), &pool); err == nil {
			err = v1.ValidateNodePool(&pool, v1.DefaultLabels().With(awsv1.Labels()))
		}
	case "NodeClaim":
		var claim v1.NodeClaim
		err = yaml.Unmarshal([]byte(content), &claim)
	case "EC2NodeClass":
		var class awsv1.EC2NodeClass
		if err = yaml.Unmarshal([]byte(content), &class); err == nil {
			err = errors.Join(awsv1.ValidateTags(class.Spec.Tags), kubelet.Check(class.Spec.Kubelet), kubelet.Supported(class.Spec.Kubelet, class.AMIFamily()))
		}
	}
	var syntax *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		o.askAt(o.root, "the API server would refuse it: %s is no %s", syntax.Field, syntax.Type)
	case err != nil:
		o.askAt(o.root, "Karpenter would refuse it: %s", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
}
