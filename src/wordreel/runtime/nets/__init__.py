"""The networks behind the experts, built as ONNX models from published weights."""
