# An image that trains; by default micro_softmax, on CPUs:
#     docker build -t zoo . && docker run zoo
#     docker build -t zoo:tpu --build-arg JAX='jax[tpu]' .      # or jax[cuda12]
FROM python:3.12-slim
ARG JAX=jax
WORKDIR /zoo
# Without what is for development, from pytest on; gcsfs is for runs in gs://.
COPY requirements.txt .
RUN sed '/^pytest/,$d' requirements.txt > /tmp/requirements.txt \
    && pip install --no-cache-dir -r /tmp/requirements.txt gcsfs "$JAX"
COPY . .
ENTRYPOINT ["python", "train.py"]
CMD ["--config", "micro_softmax", "runs/micro_softmax"]
