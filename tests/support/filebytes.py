"""The bytes of a file, taken apart and put together: the header of safetensors, and the arrays."""

import json
import struct


def apart(content):
    length = int.from_bytes(content[:8], "little")
    return json.loads(content[8 : 8 + length]), content[8 + length :]


def whole(outer, rest):
    text = json.dumps(outer).encode()
    return struct.pack("<Q", len(text)) + text + rest
